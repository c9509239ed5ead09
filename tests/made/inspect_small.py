"""Small Inspect tasks with mockllm/model that touch most of the log format. Also runs on older inspect_ai releases (0.3.60 on).

    inspect_small.py OUTDIR     writes small.eval, small.json, error.eval, cancelled.eval (see NAMES printed)
"""
import math
import os
import shutil
import sys

from inspect_ai import Task, eval as run_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Target, accuracy, includes, match, mean, model_graded_qa, scorer, stderr
from inspect_ai.solver import TaskState, generate, solver, system_message, use_tools
from inspect_ai.tool import ToolError, tool

IDS = ["plain", "with space", "with/slash", "deep/er/path id", "ünïcode-日本", "percent%20", "quote\"d", 8, "errs", "long text"]


@tool
def add():
    async def execute(x: int, y: int):
        """Add two numbers.

        Args:
            x: first.
            y: second.
        """
        return x + y
    return execute


@tool
def broken():
    async def execute(reason: str):
        """A tool that always fails.

        Args:
            reason: any text.
        """
        raise ToolError("the tool failed: " + reason)
    return execute


@solver
def fail_on(sample_id):
    async def solve(state: TaskState, generate):
        state.metadata["seen"] = True
        state.store.set("note", "kept in the store")
        if state.sample_id == sample_id:
            raise RuntimeError("this sample errors on purpose")
        return state
    return solve


@scorer(metrics={"polite": [mean()], "length": [mean(), stderr()]})
def by_dict():
    async def score(state: TaskState, target: Target):
        t = state.output.completion
        return Score(value={"polite": 1, "length": len(t)}, answer=t[:20], explanation="dict value")
    return score


@scorer(metrics=[mean()])
def by_float():
    async def score(state: TaskState, target: Target):
        return Score(value=0.375, explanation="float value", metadata={"k": [1, 2.5, None, "s"]})
    return score


@scorer(metrics=[mean()])
def nan_score():
    async def score(state: TaskState, target: Target):
        return Score(value=math.nan if state.sample_id in ("plain", 8) else 1.0, explanation="NaN for two samples")
    return score


# Finite lists: an endless generator would be copied whole into the log's model arguments.
def used(output):
    """With usage given, mockllm does not count tokens itself, for which it would fetch a vocabulary from the network."""
    output.usage = ModelUsage(input_tokens=21, output_tokens=7, total_tokens=28, input_tokens_cache_read=3)
    return output


def outputs():
    """The model's replies in the order asked (max_samples=1): each sample calls add, then the failing tool, then answers."""
    return [used(o) for _ in range(20) for o in (
        ModelOutput.for_tool_call("mockllm/model", "add", {"x": 1, "y": 2}),
        ModelOutput.for_tool_call("mockllm/model", "broken", {"reason": "on purpose"}),
        ModelOutput.from_content("mockllm/model", "The answer is 3."))]


def judge_replies():
    return [used(ModelOutput.from_content("mockllm/judge", t)) for _ in range(7) for t in (
        "The submission names the right number.\n\nGRADE: C", "The submission is only partly right.\n\nGRADE: P", "No grade here, sorry.")]


def samples():
    out = []
    for i in IDS:
        text = "What is 1 + 2?" + (" Please explain. " * 40 if i == "long text" else "")
        inp = text if i != "with space" else [ChatMessageSystem(content="Be brief."), ChatMessageUser(content=text)]
        out.append(Sample(id=i, input=inp, target="3" if i != "with/slash" else ["3", "three"], metadata={"group": str(i)[:4], "n": 1}))
    return MemoryDataset(out, name="small-made")


def task():
    return Task(dataset=samples(), solver=[system_message("You add numbers."), use_tools(add(), broken()), fail_on("errs"), generate()],
                scorer=[match(location="any"), includes(), model_graded_qa(partial_credit=True, model=get_model("mockllm/judge", custom_outputs=judge_replies())),
                        by_dict(), by_float(), nan_score()], name="small")


def run(fmt, out, name, **kw):
    tmp = os.path.join(out, "tmp_" + name)
    logs = run_eval(task(), model=get_model("mockllm/model", custom_outputs=outputs()), epochs=2, log_dir=tmp, log_format=fmt, display="none",
                    max_samples=1, tags=["made", "small"], metadata={"why": "format sample"}, **kw)
    os.replace(logs[0].location.replace("file://", ""), os.path.join(out, f"{name}.{fmt}"))
    shutil.rmtree(tmp)
    print(name, fmt, logs[0].status)


if __name__ == "__main__":
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    run("eval", out, "small", fail_on_error=False)
    run("json", out, "small", fail_on_error=False)
    run("eval", out, "error", fail_on_error=True)  # status: error, samples after the failing one missing
    write_eval_log(read_eval_log(os.path.join(out, "small.eval")), os.path.join(out, "small_converted.json"))
