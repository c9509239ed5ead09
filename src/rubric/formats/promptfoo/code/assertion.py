# dicta runs this program for a `python` assertion of promptfoo.
import importlib.util, json, os, sys, textwrap

request = json.load(sys.stdin)
params = request["params"]
metadata = request["transcript"].get("metadata") or {}
variables = {**(metadata.get("vars") or {}), **(params.get("vars") or {})}
answers = [m for m in request["transcript"]["messages"] if m["role"] == "assistant"]
reply = answers[-1] if answers else {}
text = reply.get("content") or ""
if isinstance(text, list):
    text = "".join(part["text"] for part in text if part.get("type") == "text")
calls = reply.get("tool_calls") or []


def read_output():
    # promptfoo gives code the value of the provider: a text, a structure, calls, or a message with calls.
    form = (reply.get("metadata") or {}).get("output_type")
    if form == "json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    if form == "message":
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return text or calls or ""


output = read_output()
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
        scope = {"json": json}
        exec("def get_assert(output, context):\n" + textwrap.indent(code, "    "), scope)
        return scope["get_assert"](output, context)
    return eval(code.strip(), {"output": output, "context": context, "json": json})


def grade(got):
    threshold = params.get("threshold")
    if isinstance(got, str):
        # promptfoo also reads the text of a result.
        words = {"true": True, "false": False}
        try:
            got = words[got.lower()] if got.lower() in words else json.loads(got)
        except ValueError:
            pass
    if isinstance(got, bool):
        return got, 1.0 if got else 0.0, ""
    if isinstance(got, (int, float)):
        return (got > 0 if threshold is None else got >= threshold), float(got), ""
    if isinstance(got, dict):
        passed = got.get("pass", got.get("pass_"))
        score = got.get("score")
        if isinstance(passed, bool):
            is_low = threshold is not None and isinstance(score, (int, float)) and score < threshold
            return passed and not is_low, score, got.get("reason") or ""
    raise SystemExit("the code must return True, False, a number or {pass, score, reason}, not %r" % (got,))


passed, score, reason = grade(call())
answer = {"passed": passed, "reason": str(reason)}
if isinstance(score, (int, float)) and 0 <= score <= 1:
    answer["score"] = score
print(json.dumps(answer))
