//! The cost of variants, with cached verdicts and with budgets.

use super::*;

#[test]
fn cached_verdict_costs_what_its_own_judge_would_charge() {
    let server = pupil();
    let test_dir = workspace(&server);
    let config = std::fs::read_to_string(test_dir.path().join("dicta.yaml")).expect("text");
    let dear = format!(
        "judges:\n  n: {{ provider: openai, base_url: '{}', model: m, prices: {{ input: 10, output: 10 }} }}",
        server.base_url()
    );
    test_dir.write("dicta.yaml", &config.replace("judges:", &dear));
    test_dir.write(
        "p.yaml",
        "eval: colour\nvariants: [{ name: base }, { name: dear, judge: n }]\n",
    );
    let found = json_of(
        &test_dir,
        &["variants", "p.yaml", "--yes", "--format", "json"],
    );
    let usd = |at: usize| {
        found["variants"][at]["cost_usd_per_1000"]
            .as_f64()
            .expect("a cost")
    };
    // Both send the same request, so the second one takes the verdicts of the first from the cache.
    let labels = found["labels"]["pass"].as_u64().expect("a count")
        + found["labels"]["fail"].as_u64().expect("a count");
    assert_eq!(server.requests().len() as u64, labels, "{found}");
    assert!((usd(1) - 10.0 * usd(0)).abs() < 1e-9, "{found}");
}

#[test]
fn budget_that_cuts_a_variant_changes_no_cost_of_asking() {
    let server = pupil();
    let whole = json_of(
        &workspace(&server),
        &["variants", "v.yaml", "--yes", "--format", "json"],
    );
    let asked = server.requests().len();
    let usd = |found: &Value| {
        let base = &found["variants"][0];
        base["cost_usd_per_1000"].as_f64().expect("a cost")
    };
    // Enough for a few of the verdicts.
    let limit = format!("{}", usd(&whole) * 4.5 / 1000.0);
    let cut_dir = workspace(&server);
    let args = ["variants", "v.yaml", "--yes", "--format", "json"];
    let cut = cut_dir.dicta(&[&args[..], &["--max-cost", &limit]].concat());
    assert!(server.requests().len() - asked < asked / 2);
    let cut: Value = serde_json::from_slice(&cut.stdout).expect("JSON");
    assert!((usd(&cut) - usd(&whole)).abs() < 1e-9, "{cut}");
}
