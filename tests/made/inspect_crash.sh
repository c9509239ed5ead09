#!/usr/bin/env bash
# Inspect logs of runs that did not end well: killed (no header.json), cancelled by SIGINT.
: "${MADE:?the folder to make the files in}"; HERE=$(cd "$(dirname "$0")" && pwd); PY=${PY:-$MADE/venv/bin/python}; OUT=${OUT:-$MADE/inspect}; mkdir -p "$OUT"
cat >"$MADE/work/slow_task.py" <<'T'
"""Twelve samples, the first six quick, the others slow: killed in between it leaves a log that is still running."""
import asyncio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, solver

@solver
def slow():
    async def solve(state, generate):
        await asyncio.sleep(0.05 if int(str(state.sample_id)) < 6 else 60)
        return state
    return solve

def replies(): # with usage, so that mockllm fetches no vocabulary
    out = [ModelOutput.from_content("mockllm/model", "Default output") for _ in range(12)]
    for o in out:
        o.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    return out

@task
def slow_task():
    return Task(dataset=MemoryDataset([Sample(id=i, input=f"Say {i}", target="output") for i in range(12)]), solver=[slow(), generate()], scorer=includes(),
                model=get_model("mockllm/model", custom_outputs=replies()))
T
go() { # go SIGNAL NAME
  rm -rf "$MADE/work/slowlogs"
  (cd "$MADE/work" && INSPECT_TELEMETRY= DO_NOT_TRACK=1 exec timeout 100 "$PY" -m inspect_ai eval slow_task.py --log-dir "$MADE/work/slowlogs" --log-buffer 2 --display none --max-samples 3 >/dev/null 2>"$MADE/logs/slow.err") & P=$!
  sleep "${WAIT:-20}"; C=$(pgrep -P "$P" | head -1); kill -"$1" "${C:-$P}"; sleep 3
  cp "$MADE"/work/slowlogs/*.eval "$OUT/$2.eval"; kill -9 "$P" ${C:-} 2>/dev/null; ls -la "$OUT/$2.eval"
}
mkdir -p "$MADE/work"; go KILL killed; go INT cancelled
