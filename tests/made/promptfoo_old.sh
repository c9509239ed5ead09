#!/usr/bin/env bash
# promptfoo 0.43.1 (March 2024): its JSON has version 2 results (a table) and no prompts at results.prompts.
: "${MADE:?the folder to make the files in}"; OUT=$MADE/promptfooold; mkdir -p "$OUT/home"
cat >"$OUT/config.yaml" <<'T'
description: made, old layout
prompts: [p1.txt, p2.txt]
providers: [python:echo.py]
tests:
  - {description: pass, vars: {word: hello}, assert: [{type: contains, value: hello, metric: has_word}, {type: javascript, value: "output.length > 3"}]}
  - {description: fail, vars: {word: other}, assert: [{type: equals, value: nothing}]}
T
printf 'Say {{word}}' >"$OUT/p1.txt"; printf 'Repeat: {{word}}, please' >"$OUT/p2.txt"
cat >"$OUT/echo.cjs" <<'T'
module.exports = class { id() { return 'made-echo'; } async callApi(p) { return { output: p, tokenUsage: { total: 9, prompt: 5, completion: 4 }, cost: 0.001 }; } };
T
sed -i 's/python:echo.py/.\/echo.cjs/' "$OUT/config.yaml"
cd "$OUT" && PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1 PROMPTFOO_CONFIG_DIR=$OUT/home NO_COLOR=1 HOME=$OUT/home timeout 60 \
  node "$MADE/pfold/node_modules/promptfoo/dist/src/main.js" eval -c config.yaml --no-cache --no-table --no-progress-bar -o out.json -o out.yaml -o out.csv >log.txt 2>&1; echo "rc $?"; find . -type f | head -20
