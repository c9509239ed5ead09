#!/usr/bin/env python3
"""Compares the figures of random tables with scikit-learn, statsmodels, krippendorff and SciPy.

The test `figures_of_random_tables_agree_with_python_libraries` in python.rs writes tables and the figures of dicta as JSON
to the standard input of this script. The script exits with 1 if a figure differs by more than 1e-6, and with 77 if a
package is missing.

    pip install scikit-learn statsmodels krippendorff scipy
    DICTA_STATISTICS_PYTHON=python3 cargo test --locked --features full --test statistics
"""
import json
import math
import sys
import warnings

try:
    import krippendorff
    import numpy as np
    from scipy import stats
    from sklearn import metrics
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint
except ImportError as error:
    print(f"{sys.executable} has no {error.name}")
    sys.exit(77)

warnings.simplefilter("ignore")
compared = 0
problems = []


def check(kind, name, ours, theirs, case):
    """Compares a figure. A figure of dicta without a value is null."""
    global compared
    compared += 1
    if ours is None:
        # A library returns nan, or 0 or 1 by its own convention.
        same = math.isnan(theirs) or theirs in (0.0, 1.0)
    else:
        same = abs(ours - theirs) <= 1e-6 * max(1.0, abs(theirs))
    if not same:
        problems.append(f"{kind} {name}: {ours} is not {theirs} for {json.dumps(case)[:300]}")


def check_figures(kind, case, theirs):
    assert case["figures"].keys() == theirs.keys(), (kind, case["figures"].keys())
    for name, value in theirs.items():
        check(kind, name, case["figures"][name], float(value), case)


def check_list(kind, name, ours, theirs, case):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        check(kind, name, a, float(b), case)


def binary(case):
    tp, fp, tf, ff = case["counts"]
    label = [1] * (tp + ff) + [0] * (fp + tf)
    verdict = [1] * tp + [0] * ff + [1] * fp + [0] * tf
    kappa = cohens_kappa([[tp, ff], [fp, tf]])
    check_figures("binary", case, {
        "agreement": metrics.accuracy_score(label, verdict),
        "tpr": metrics.recall_score(label, verdict),
        "tnr": metrics.recall_score(label, verdict, pos_label=0),
        "precision_on_fail": metrics.precision_score(label, verdict, pos_label=0),
        "f1_on_fail": metrics.f1_score(label, verdict, pos_label=0),
        "balanced_accuracy": metrics.balanced_accuracy_score(label, verdict),
        "mcc": metrics.matthews_corrcoef(label, verdict),
        "kappa": metrics.cohen_kappa_score(label, verdict),
        "kappa_max": kappa.kappa_max,
        "kappa_se": kappa.std_kappa,
        "kappa_null_se": kappa.std_kappa0,
    })


def weighted(case):
    label, verdict, weight = zip(*case["labels"])
    weights = {"sample_weight": weight}
    check_figures("weighted", case, {
        "agreement": metrics.accuracy_score(label, verdict, **weights),
        "tpr": metrics.recall_score(label, verdict, **weights),
        "tnr": metrics.recall_score(label, verdict, pos_label=False, **weights),
        "f1_on_fail": metrics.f1_score(label, verdict, pos_label=False, **weights),
        "kappa": metrics.cohen_kappa_score(label, verdict, **weights),
        "mcc": metrics.matthews_corrcoef(label, verdict, **weights),
    })


def categories(case):
    kappa = cohens_kappa(np.array(case["rows"]))
    check_figures("categories", case, {
        "kappa": kappa.kappa,
        "kappa_se": kappa.std_kappa,
        "kappa_null_se": kappa.std_kappa0,
        "kappa_max": kappa.kappa_max,
    })


def scores(case):
    person, judge = zip(*case["pairs"])
    person_level, judge_level = [int(x) for x in person], [int(x) for x in judge]
    levels = {"labels": [1, 2, 3, 4, 5]}
    check_figures("scores", case, {
        "linear": metrics.cohen_kappa_score(person_level, judge_level, weights="linear", **levels),
        "quadratic": metrics.cohen_kappa_score(person_level, judge_level, weights="quadratic", **levels),
        "spearman": stats.spearmanr(person, judge).statistic,
        "kendall": stats.kendalltau(person, judge).statistic,
        "mae": metrics.mean_absolute_error(person, judge),
    })


def raters(case):
    table = np.array(case["units"])
    check_figures("raters", case, {
        "fleiss": fleiss_kappa(table),
        "randolph": fleiss_kappa(table, method="randolph"),
    })


def missing(case):
    ratings = np.array([[np.nan if x is None else x for x in unit] for unit in case["units"]]).T

    def alpha(level):
        try:
            return krippendorff.alpha(reliability_data=ratings, level_of_measurement=level)
        except ValueError:
            # There is only one value.
            return math.nan

    check_figures("missing", case, {level: alpha(level) for level in case["figures"]})


def shares(case):
    for method in ("wilson", "beta", "jeffreys"):
        theirs = list(proportion_confint(case["hits"], case["n"], method=method))
        # dicta closes the interval at 0 without a hit and at 1 without a miss, as Brown, Cai and DasGupta propose.
        if method == "jeffreys" and case["hits"] == 0:
            theirs[0] = 0.0
        if method == "jeffreys" and case["hits"] == case["n"]:
            theirs[1] = 1.0
        check_list("shares", method, case[method], theirs, case)


def pairs(case):
    table = [[0, case["lost"]], [case["gained"], 0]]
    n, fewer = case["lost"] + case["gained"], min(case["lost"], case["gained"])
    corrected, plain = (mcnemar(table, exact=False, correction=c) for c in (True, False))
    if case["lost"] == case["gained"]:
        # statsmodels squares |b − c| − 1 = −1; dicta stops at 0.
        corrected.statistic, corrected.pvalue = 0.0, 1.0
    check("pairs", "exact", case["exact"], float(mcnemar(table, exact=True).pvalue), case)
    mid_p = 2 * stats.binom.cdf(fewer, n, 0.5) - stats.binom.pmf(fewer, n, 0.5)
    check("pairs", "mid_p", case["mid_p"], float(min(1.0, mid_p)), case)
    check_list("pairs", "corrected", case["corrected"], [corrected.statistic, corrected.pvalue], case)
    check_list("pairs", "plain", case["plain"], [plain.statistic, plain.pvalue], case)


def holm(case):
    check_list("holm", "adjusted", case["adjusted"], multipletests(case["values"], method="holm")[1], case)


def variants(case):
    """Computes a whole table of `dicta variants` again, from labels and verdicts."""
    labels = case["labels"]
    first = case["variants"][0]["verdicts"]
    p_values = []
    for at, row in enumerate(case["variants"]):
        pairs = [(y, a) for y, a in zip(labels, row["verdicts"]) if a is not None]
        label, verdict = zip(*pairs)
        shares = {
            "tpr": (metrics.recall_score(label, verdict), [a for y, a in pairs if y]),
            "tnr": (metrics.recall_score(label, verdict, pos_label=False), [not a for y, a in pairs if not y]),
            "agreement": (metrics.accuracy_score(label, verdict), [y == a for y, a in pairs]),
        }
        for name, (value, hits) in shares.items():
            ours = row[name]
            check("variants", name, ours["value"], float(value), case)
            check("variants", f"{name} labels", ours["labels"], len(hits), case)
            interval = proportion_confint(sum(hits), len(hits), method="wilson")
            check_list("variants", f"{name} interval", ours["interval"], interval, case)
        if at == 0:
            assert row["p"] is None and row["p_holm"] is None
            continue
        table = np.zeros((2, 2), dtype=int)
        for y, old, new in zip(labels, first, row["verdicts"]):
            if old is not None and new is not None:
                table[int(old == y), int(new == y)] += 1
        check("variants", "lost", row["lost"], int(table[1, 0]), case)
        check("variants", "gained", row["gained"], int(table[0, 1]), case)
        p_value = mcnemar(table, exact=True).pvalue
        check("variants", "p", row["p"], float(p_value), case)
        p_values.append(min(1.0, float(p_value)))
    adjusted = multipletests(p_values, method="holm")[1]
    check_list("variants", "p_holm", [row["p_holm"] for row in case["variants"][1:]], adjusted, case)


def probabilities(case):
    probability, label = zip(*case["pairs"])
    check_figures("probabilities", case, {
        "brier": metrics.brier_score_loss(label, probability),
        "auc": metrics.roc_auc_score(label, probability),
    })


def flips(case):
    other = stats.betabinom(case["others"], case["seen"] + 0.5, case["measured"] - case["seen"] + 0.5)
    check_list("flips", "range", case["range"], [other.ppf(0.025), other.ppf(0.975)], case)
    check("flips", "at_least", case["at_least"], float(other.sf(case["at"] - 1)), case)
    rates = [2 * c * (m - c) / (m * (m - 1)) for c, m in case["cells"]]
    same = stats.poisson_binom(rates)
    check_list("flips", "same_range", case["same_range"], [same.ppf(0.025), same.ppf(0.975)], case)
    check("flips", "same_at_least", case["same_at_least"], float(same.sf(2)), case)


def main():
    cases = json.load(sys.stdin)
    kinds = {
        "binary": binary,
        "weighted": weighted,
        "categories": categories,
        "scores": scores,
        "raters": raters,
        "missing": missing,
        "shares": shares,
        "pairs": pairs,
        "holm": holm,
        "variants": variants,
        "probabilities": probabilities,
        "flips": flips,
    }
    assert cases.keys() == kinds.keys(), cases.keys()
    for kind, compare in kinds.items():
        assert cases[kind], kind
        for case in cases[kind]:
            compare(case)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} of {compared} figures differ")
        sys.exit(1)
    print(f"{compared} figures agree")


main()
