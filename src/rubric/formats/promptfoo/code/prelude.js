// dicta runs this program for a `javascript` assertion of promptfoo.
const request = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const params = request.params;
const metadata = request.transcript.metadata || {};
const vars = { ...(metadata.vars || {}), ...(params.vars || {}) };
const answers = request.transcript.messages.filter((message) => message.role === 'assistant');
const reply = answers.length ? answers[answers.length - 1] : {};
const text = Array.isArray(reply.content)
  ? reply.content.filter((part) => part.type === 'text').map((part) => part.text).join('')
  : reply.content || '';
const calls = reply.tool_calls && reply.tool_calls.length ? reply.tool_calls : undefined;
const parse = (written) => {
  try {
    return JSON.parse(written);
  } catch {
    return undefined;
  }
};
// promptfoo gives code the value of the provider: a text, a structure, calls, or a message with calls.
const readOutput = () => {
  const form = (reply.metadata || {}).output_type;
  const parsed = form === 'json' ? parse(text) : undefined;
  if (parsed !== undefined) return parsed;
  if (form === 'message') return { role: 'assistant', content: text || null, tool_calls: calls };
  return text || calls || '';
};
const output = readOutput();
const isScript = (code) => {
  try {
    new (require('vm').Script)(code);
    return true;
  } catch {
    return false;
  }
};
// promptfoo returns the value of code on one line. After declarations, that is the value of the last statement.
const compile = (written) => {
  const code = written.trimEnd();
  const isLine = !code.includes('\n');
  const isDeclaration = /^\s*(const|let|var)\s/.test(code);
  const program = (body) => new Function('output', 'context', 'process', 'require', body);
  if (isLine && isDeclaration && isScript(code)) return program('return eval(' + JSON.stringify(code) + ')');
  if (isLine && isScript('(function () { return ' + code + '\n})')) return program('return ' + code);
  return program(code);
};
const context = { vars, config: params.config, test: { vars, metadata }, prompt: undefined };
const answer = (passed, score, reason) => {
  const known = typeof score === 'number' && score >= 0 && score <= 1 ? { score } : {};
  console.log(JSON.stringify({ passed, ...known, reason: reason === undefined ? '' : String(reason) }));
};
const grade = (got) => {
  const threshold = params.threshold;
  if (typeof got === 'boolean') return answer(got, got ? 1 : 0);
  if (typeof got === 'number') return answer(threshold === undefined ? got > 0 : got >= threshold, got);
  if (got && typeof got === 'object' && typeof got.pass === 'boolean') return answer(got.pass, got.score, got.reason);
  throw new Error('the code must return true, false, a number or { pass, score, reason }, not ' + JSON.stringify(got));
};
