//! Costs of model calls, prices, and budgets.
//!
//! A sum counts the calls whose cost is unknown and never adds them as 0.

use serde::{Deserialize, Serialize};

use super::{JudgeConfig, Prices, ProviderKind, TokenUsage};

/// A sum of money, with the number of calls that it does not cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The cost in USD of the calls whose cost is known.
    pub usd: f64,
    /// The number of calls whose cost is unknown: no price, or no token counts from the server.
    pub unknown: u64,
}

impl Cost {
    /// A sum over no calls.
    pub const ZERO: Self = Self {
        usd: 0.0,
        unknown: 0,
    };

    /// Adds two sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            usd: self.usd + other.usd,
            unknown: self.unknown.saturating_add(other.unknown),
        }
    }

    /// Returns the cost in USD, if every call's cost is known.
    pub fn exact_usd(self) -> Option<f64> {
        (self.unknown == 0).then_some(self.usd)
    }

    /// Returns true if the sum covers no cost and no unknown call.
    pub fn is_zero(&self) -> bool {
        self.usd == 0.0 && self.unknown == 0
    }
}

impl std::fmt::Display for Cost {
    /// Formats the sum: `$0.1200`, `$0.1200 + unknown for 2 calls`, `cost unknown for 2 calls`, `free`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let calls = super::pluralize(self.unknown, "call");
        match (self.usd > 0.0, self.unknown) {
            (false, 0) => f.write_str("free"),
            (false, _) => write!(f, "cost unknown for {calls}"),
            (true, 0) => write!(f, "${:.4}", self.usd),
            (true, _) => write!(f, "${:.4} + unknown for {calls}", self.usd),
        }
    }
}

/// Formats an amount: `$0.12`, `$0.0031`, `$0`. A small amount keeps its digits, because `$0.00` looks free.
pub fn format_usd(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        amount if amount < 0.0001 => "<$0.0001".to_owned(),
        amount if amount < 0.1 => format!("${amount:.4}"),
        amount => format!("${amount:.2}"),
    }
}

/// The prices of a model, and their origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPricing {
    /// The prices in USD per million tokens.
    pub prices: Prices,
    /// The day of the built-in prices; `None` if the prices are from dicta.yaml.
    pub as_of: Option<&'static str>,
    /// The longest prompt, in tokens, that the prices cover; the cost of a longer prompt is unknown.
    max_prompt_tokens: Option<u64>,
}

impl ModelPricing {
    /// Returns the cost of a usage in USD; `None` if the tokens are unknown or the prompt is longer than the prices
    /// cover.
    pub fn usage_cost(&self, usage: &TokenUsage) -> Option<f64> {
        let (input, output) = (usage.input?, usage.output?);
        if !self.covers_prompt(input) {
            return None;
        }
        let Prices { cached: price, .. } = self.prices;
        // A server may report more cached tokens than prompt tokens; the difference must not become negative.
        let cached = usage.cached.unwrap_or(0).min(input);
        let fresh = (input - cached) as f64 * self.prices.input;
        // Without a price for cached tokens, the full price gives an upper limit.
        let read = cached as f64 * price.unwrap_or(self.prices.input);
        Some((fresh + read + output as f64 * self.prices.output) / 1e6)
    }

    /// Reports whether the prices cover a prompt of this length.
    pub fn covers_prompt(&self, tokens: u64) -> bool {
        self.max_prompt_tokens.is_none_or(|most| tokens <= most)
    }

    /// Returns the cost of token counts in USD, for prompts of any length.
    pub fn estimate_token_cost(&self, input: u64, output: u64) -> f64 {
        (input as f64 * self.prices.input + output as f64 * self.prices.output) / 1e6
    }
}

/// A row of the built-in price table.
struct PriceRow {
    provider: ProviderKind,
    model: &'static str,
    /// True if the model's dated names (`…-20250929`) have the same price.
    covers_dated_names: bool,
    input: f64,
    output: f64,
    cached: Option<f64>,
    max_prompt_tokens: Option<u64>,
    as_of: &'static str,
}

/// The days on which the vendors' pages were read, with the reader if it was another project:
/// - Google: <https://ai.google.dev/gemini-api/docs/pricing> as transcribed in api-evangelist/deepmind
///   `plans/deepmind-plans-pricing.yml` (read 2026-10-07), the lines missing there from pages that quote it; its price for
///   cached tokens is not among them, so that these count as fresh ones.
/// - Anthropic: <https://platform.claude.com/docs/en/about-claude/pricing> (a stored copy; the same figures verified on
///   2026-10-10 by synaps 0.10.2).
/// - `OpenAI`: its model pages as quoted on 2026-06-21 by tokenmath.io and in github/docs `models-and-pricing.yml`.
const GOOGLE_AS_OF: &str = "2026-10-07";
const ANTHROPIC_AS_OF: &str = "2026-10-10";
const OPENAI_AS_OF: &str = "2026-06-21";

const fn gemini_price(
    model: &'static str,
    input: f64,
    output: f64,
    up_to: Option<u64>,
) -> PriceRow {
    PriceRow {
        provider: ProviderKind::Gemini,
        model,
        covers_dated_names: false,
        input,
        output,
        cached: None,
        max_prompt_tokens: up_to,
        as_of: GOOGLE_AS_OF,
    }
}

const fn claude_price(model: &'static str, input: f64, output: f64, cached: f64) -> PriceRow {
    PriceRow {
        provider: ProviderKind::Anthropic,
        model,
        covers_dated_names: true,
        input,
        output,
        cached: Some(cached),
        max_prompt_tokens: None,
        as_of: ANTHROPIC_AS_OF,
    }
}

const fn gpt_price(
    model: &'static str,
    dated: bool,
    input: f64,
    output: f64,
    cached: f64,
) -> PriceRow {
    PriceRow {
        provider: ProviderKind::Openai,
        model,
        covers_dated_names: dated,
        input,
        output,
        cached: Some(cached),
        max_prompt_tokens: None,
        as_of: OPENAI_AS_OF,
    }
}

/// The built-in prices. dicta reports the cost of a model that is not in this table as unknown.
const PRICE_TABLE: &[PriceRow] = &[
    // Google charges another price for prompts above 200,000 tokens, which the table does not have.
    gemini_price("gemini-2.5-pro", 1.25, 10.0, Some(200_000)),
    gemini_price("gemini-2.5-flash", 0.30, 2.50, None),
    gemini_price("gemini-2.5-flash-lite", 0.10, 0.40, None),
    gemini_price("gemini-3.5-flash", 1.50, 9.0, None),
    claude_price("claude-opus-4-5", 5.0, 25.0, 0.50),
    claude_price("claude-opus-4-6", 5.0, 25.0, 0.50),
    claude_price("claude-sonnet-4", 3.0, 15.0, 0.30),
    claude_price("claude-sonnet-4-5", 3.0, 15.0, 0.30),
    claude_price("claude-sonnet-4-6", 3.0, 15.0, 0.30),
    claude_price("claude-haiku-4-5", 1.0, 5.0, 0.10),
    gpt_price("gpt-4.1", true, 2.0, 8.0, 0.50),
    gpt_price("gpt-4.1-mini", true, 0.40, 1.60, 0.10),
    gpt_price("gpt-4.1-nano", true, 0.10, 0.40, 0.025),
    gpt_price("gpt-4o", false, 2.50, 10.0, 1.25),
    gpt_price("gpt-4o-mini", true, 0.15, 0.60, 0.075),
    gpt_price("gpt-5-mini", true, 0.25, 2.0, 0.025),
];

impl PriceRow {
    fn matches_model(&self, provider: ProviderKind, model: &str) -> bool {
        let provider = match provider {
            // Both protocols call the same models at the same prices.
            ProviderKind::OpenaiResponses => ProviderKind::Openai,
            other => other,
        };
        let dated = |rest: &str| {
            rest.strip_prefix('-').is_some_and(|day| {
                // A date is `20250929` at Anthropic and `2025-04-14` at OpenAI.
                day.bytes().filter(u8::is_ascii_digit).count() == 8
                    && day.bytes().all(|b| b.is_ascii_digit() || b == b'-')
            })
        };
        provider == self.provider
            && model
                .strip_prefix(self.model)
                .is_some_and(|rest| rest.is_empty() || (self.covers_dated_names && dated(rest)))
    }
}

/// Returns the built-in prices of a model at its vendor's own address.
fn find_built_in_pricing(provider: ProviderKind, model: &str) -> Option<ModelPricing> {
    let row = PRICE_TABLE
        .iter()
        .find(|row| row.matches_model(provider, model))?;
    Some(ModelPricing {
        prices: Prices {
            input: row.input,
            output: row.output,
            cached: row.cached,
        },
        as_of: Some(row.as_of),
        max_prompt_tokens: row.max_prompt_tokens,
    })
}

impl JudgeConfig {
    /// Returns the prices of the judge's model: its `prices:`, else the built-in prices if the judge calls the vendor
    /// directly.
    pub fn pricing(&self) -> Option<ModelPricing> {
        self.pricing_for_model(&self.model)
    }

    /// Returns the prices of another model (`params.model`) that the judge calls. `prices:` also apply to that model.
    pub fn pricing_for_model(&self, model: &str) -> Option<ModelPricing> {
        match self.prices {
            Some(prices) => Some(ModelPricing {
                prices,
                as_of: None,
                max_prompt_tokens: None,
            }),
            // Another address may be another vendor with other prices.
            None if self.base_url.is_some() => None,
            None => find_built_in_pricing(self.provider, model),
        }
    }
}

/// The limits of a run or a cell; an absent limit does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetLimits {
    /// The maximum cost in USD.
    pub max_cost_usd: Option<f64>,
    /// The maximum number of tokens, prompts and replies together.
    pub max_tokens: Option<u64>,
    /// The maximum number of model calls, including failed attempts.
    pub max_calls: Option<u64>,
    /// The number of minutes after which no call begins.
    pub max_minutes: Option<f64>,
}

impl BudgetLimits {
    /// Returns true if no limit is set.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The limits of a run and of each of its cells, and the share from which dicta asks judges to conclude.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunAndCellBudgets {
    /// The limits of the run.
    pub run: BudgetLimits,
    /// The limits of a cell.
    pub cell: BudgetLimits,
    /// The share of a limit from which dicta asks judges to conclude.
    pub soft_limit_share: f64,
}

impl Default for RunAndCellBudgets {
    fn default() -> Self {
        Self {
            run: BudgetLimits::default(),
            cell: BudgetLimits::default(),
            soft_limit_share: 0.8,
        }
    }
}

impl RunAndCellBudgets {
    /// Returns true if a limit on the cost exists.
    pub fn limits_cost(&self) -> bool {
        self.run.max_cost_usd.is_some() || self.cell.max_cost_usd.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, cached: u64) -> TokenUsage {
        TokenUsage {
            input: Some(input),
            output: Some(output),
            cached: Some(cached),
            thinking: None,
            calls: 1,
        }
    }

    fn judge(provider: ProviderKind, model: &str) -> JudgeConfig {
        JudgeConfig {
            model: model.into(),
            ..JudgeConfig::new("j", provider)
        }
    }

    #[test]
    fn cost_states_the_calls_it_does_not_cover() {
        let bill = |usd, unknown| Cost { usd, unknown };
        assert_eq!(bill(0.12, 0).to_string(), "$0.1200");
        assert_eq!(bill(0.12, 2).to_string(), "$0.1200 + unknown for 2 calls");
        assert_eq!(bill(0.0, 1).to_string(), "cost unknown for 1 call");
        assert_eq!(Cost::ZERO.to_string(), "free");
        assert_eq!(bill(1.0, 0).plus(bill(0.5, 3)), bill(1.5, 3));
        assert_eq!(bill(1.0, 3).exact_usd(), None);
    }

    #[test]
    fn cached_tokens_have_their_own_price_and_unknown_stays_unknown() {
        let mut config = judge(ProviderKind::Openai, "m");
        config.prices = Some(Prices {
            input: 2.0,
            output: 10.0,
            cached: Some(0.5),
        });
        let pricing = config.pricing().expect("its own");
        assert_eq!(
            pricing.usage_cost(&usage(1_000_000, 100_000, 400_000)),
            Some(1.2 + 0.2 + 1.0)
        );
        assert_eq!(pricing.usage_cost(&TokenUsage::default()), None);
    }

    #[test]
    fn the_built_in_table_is_for_the_vendors_own_address_and_exact_names() {
        let known = |provider, model: &str| judge(provider, model).pricing();
        let flash = known(ProviderKind::Gemini, "gemini-2.5-flash").expect("a row");
        assert_eq!((flash.prices.input, flash.prices.output), (0.30, 2.50));
        assert_eq!(flash.as_of, Some("2026-10-07"));
        assert!(known(ProviderKind::Gemini, "gemini-2.5-flash-image").is_none());
        assert!(known(ProviderKind::Anthropic, "claude-sonnet-4-5-20250929").is_some());
        assert!(known(ProviderKind::OpenaiResponses, "gpt-4.1-2025-04-14").is_some());
        assert!(
            known(ProviderKind::Openai, "gpt-4o-2024-05-13").is_none(),
            "its first snapshot cost more"
        );
        assert!(known(ProviderKind::Openai, "gemini-2.5-flash").is_none());
        let mut elsewhere = judge(ProviderKind::Openai, "gpt-4.1");
        elsewhere.base_url = Some("https://proxy.example/v1".into());
        assert!(elsewhere.pricing().is_none());
    }

    #[test]
    fn cost_of_a_prompt_above_the_limit_is_unknown() {
        let pro = judge(ProviderKind::Gemini, "gemini-2.5-pro")
            .pricing()
            .expect("a row");
        assert!(pro.usage_cost(&usage(200_000, 1, 0)).is_some());
        assert_eq!(pro.usage_cost(&usage(200_001, 1, 0)), None);
    }

    #[test]
    fn every_price_row_is_dated_and_matches_only_itself() {
        for row in PRICE_TABLE {
            assert_eq!(row.as_of.len(), "2026-10-07".len());
            let found: Vec<_> = PRICE_TABLE
                .iter()
                .filter(|other| other.matches_model(row.provider, row.model))
                .map(|other| other.model)
                .collect();
            assert_eq!(found, [row.model]);
        }
    }
}
