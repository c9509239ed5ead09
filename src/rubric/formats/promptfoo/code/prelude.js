// dicta runs this program for a `javascript` assertion of promptfoo.
const request = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const params = request.params;
const metadata = request.transcript.metadata || {};
const vars = { ...(metadata.vars || {}), ...(params.vars || {}) };
const answers = request.transcript.messages.filter((message) => message.role === 'assistant');
const content = answers.length ? answers[answers.length - 1].content : '';
const output = Array.isArray(content)
  ? content.filter((part) => part.type === 'text').map((part) => part.text).join('')
  : content || '';
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
