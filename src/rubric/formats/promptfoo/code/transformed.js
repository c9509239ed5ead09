const transform = async () => {
  // promptfoo gives an output with a structure as a value. A transcript has it as text or as calls.
  let failure = new Error('the transform returns nothing');
  for (const form of [output, parse(output), calls]) {
    if (form === undefined || form === null) continue;
    try {
      let value = form;
      for (const code of params.transforms) value = await compile(code)(value, context, process, require);
      if (value !== undefined && value !== null) return value;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
};
const toText = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const toList = (value) =>
  Array.isArray(value) ? value.map(String) : String(value).split(',').map((part) => part.trim()).filter((part) => part);
const isObject = (value) => value !== null && typeof value === 'object';
const lower = (value) => String(value).toLowerCase();
const checks = {
  equals: (wanted, got) =>
    isObject(wanted)
      ? require('util').isDeepStrictEqual(wanted, typeof got === 'string' ? parse(got) : got)
      : String(wanted) === toText(got),
  contains: (wanted, got) => toText(got).includes(String(wanted)),
  icontains: (wanted, got) => lower(toText(got)).includes(lower(wanted)),
  'contains-all': (wanted, got) => toList(wanted).every((part) => toText(got).includes(part)),
  'contains-any': (wanted, got) => toList(wanted).some((part) => toText(got).includes(part)),
  'icontains-all': (wanted, got) => toList(wanted).every((part) => lower(toText(got)).includes(lower(part))),
  'icontains-any': (wanted, got) => toList(wanted).some((part) => lower(toText(got)).includes(lower(part))),
  'starts-with': (wanted, got) => toText(got).startsWith(String(wanted)),
  regex: (wanted, got) => new RegExp(String(wanted)).test(toText(got)),
  'is-json': (wanted, got) => typeof got !== 'string' || parse(got) !== undefined,
};
const run = async () => {
  const got = await transform();
  if (params.check) {
    const passed = checks[params.check.type](params.check.value, got);
    return { pass: passed, score: passed ? 1 : 0, reason: params.check.type + ' on the transformed output: ' + toText(got).slice(0, 200) };
  }
  const file = process.argv[1];
  if (file) {
    const loaded = await import(require('url').pathToFileURL(require('path').resolve(file)).href);
    const base = loaded.default && loaded.default.default ? loaded.default.default : loaded.default;
    const found = params.function ? loaded[params.function] || base[params.function] : base;
    if (typeof found !== 'function') throw new Error(file + ' exports no such function');
    return found(got, context);
  }
  return compile(params.code)(got, context, process, require);
};
run().then(grade).catch((error) => {
  console.error(error && error.message ? error.message : error);
  process.exitCode = 1;
});
