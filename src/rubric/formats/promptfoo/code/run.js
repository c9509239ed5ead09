const run = async () => {
  const file = process.argv[1];
  if (file) {
    const loaded = await import(require('url').pathToFileURL(require('path').resolve(file)).href);
    const base = loaded.default && loaded.default.default ? loaded.default.default : loaded.default;
    const found = params.function ? loaded[params.function] || base[params.function] : base;
    if (typeof found !== 'function') throw new Error(file + ' exports no such function');
    return found(output, context);
  }
  return compile(params.code)(output, context, process, require);
};
run().then(grade).catch((error) => {
  console.error(error && error.message ? error.message : error);
  process.exitCode = 1;
});
