# dicta runs this program for a `python` assertion of promptfoo.
import importlib.util, json, os, sys, textwrap

request = json.load(sys.stdin)
params = request["params"]
metadata = request["transcript"].get("metadata") or {}
variables = {**(metadata.get("vars") or {}), **(params.get("vars") or {})}
answers = [m for m in request["transcript"]["messages"] if m["role"] == "assistant"]
content = answers[-1]["content"] if answers else ""
if isinstance(content, list):
    content = "".join(part["text"] for part in content if part.get("type") == "text")
output = content or ""
context = {
    "vars": variables,
    "config": params.get("config"),
    "test": {"vars": variables, "metadata": metadata},
    "prompt": None,
}


def call():
    if len(sys.argv) > 1:
        path = os.path.abspath(sys.argv[1])
        sys.path.insert(0, os.path.dirname(path))
        spec = importlib.util.spec_from_file_location("assertion", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, params.get("function") or "get_assert")(output, context)
    code = params["code"]
    if "\n" in code.strip():
        scope = {}
        exec("def get_assert(output, context):\n" + textwrap.indent(code, "    "), scope)
        return scope["get_assert"](output, context)
    return eval(code.strip(), {"output": output, "context": context, "json": json})


def grade(got):
    threshold = params.get("threshold")
    if isinstance(got, bool):
        return got, 1.0 if got else 0.0, ""
    if isinstance(got, (int, float)):
        return (got > 0 if threshold is None else got >= threshold), float(got), ""
    if isinstance(got, dict):
        passed = got.get("pass", got.get("pass_"))
        if isinstance(passed, bool):
            return passed, got.get("score"), got.get("reason") or ""
    raise SystemExit("the code must return True, False, a number or {pass, score, reason}, not %r" % (got,))


passed, score, reason = grade(call())
answer = {"passed": passed, "reason": str(reason)}
if isinstance(score, (int, float)) and 0 <= score <= 1:
    answer["score"] = score
print(json.dumps(answer))
