use proptest::prelude::*;
use protocol::{AgentPath, ThreadId, Usage};

use super::*;

const PRICE: Price = Price { input: 1.0, cached_input: 0.1, output: 10.0 };

fn tokens(limit: u64) -> Limit {
    Limit { tokens: Some(limit), usd: None }
}

fn usd(limit: f64) -> Limit {
    Limit { tokens: None, usd: Some(Usd::new(limit)) }
}

fn spent(tokens: u64) -> Spent {
    Spent { tokens, usd: Usd::default() }
}

/// A root, a child and a grandchild, with a limit each on them and those below.
fn family(limits: [Limit; 3], each: Limit) -> (Accounts, [ThreadId; 3]) {
    let ids = [ThreadId::new(), ThreadId::new(), ThreadId::new()];
    let mut accounts = Accounts::new(each);
    for (index, path) in ["/root", "/root/a", "/root/a/b"].into_iter().enumerate() {
        let parent = index.checked_sub(1).map(|above| ids[above]);
        accounts.open(ids[index], parent, path.parse::<AgentPath>().unwrap(), limits[index], Spent::default());
    }
    (accounts, ids)
}

/// One agent with `limit` that has used `used`: what a request of `input` tokens gets.
fn check(limit: Limit, used: Spent, input: u64, expect: &str) {
    let root = ThreadId::new();
    let mut accounts = Accounts::new(Limit::default());
    accounts.open(root, None, AgentPath::root(), limit, used);
    let got = match accounts.reserve(root, input, Some(PRICE)) {
        Ok(reserved) => format!("{} {:?}", reserved.usage.total(), reserved.max_output),
        Err(refusal) => refusal.to_string(),
    };
    assert_eq!(got, expect);
}

#[test]
fn what_a_request_gets() {
    check(Limit::default(), spent(1_000_000), 500, "16884 None");
    check(tokens(100_000), spent(0), 500, "16884 None");
    check(tokens(100_000), spent(90_000), 500, "10000 Some(9500)");
    check(tokens(100_000), spent(98_000), 900, "2000 Some(1100)");
    check(
        tokens(100_000),
        spent(98_000),
        1_000,
        "the budget of the tree is used up: 98,000 of 100,000 tokens are used, and the next request needs about 2,024",
    );
    check(
        tokens(1_000),
        spent(120_000),
        10,
        "the budget of the tree is used up: 120,000 of 1,000 tokens are used, and the next request needs about 1,034",
    );
    // 0.02 dollars: 1,000 tokens in are 0.001, the rest buys 1,900 tokens out.
    check(usd(0.02), spent(0), 1_000, "2900 Some(1900)");
    check(
        usd(0.01),
        spent(0),
        1_000,
        "the budget of the tree is used up: $0.00 of $0.0100 are used, and the next request needs about $0.0112",
    );
    let used = Spent { tokens: 0, usd: Usd::new(1.5) };
    check(
        usd(1.0),
        used,
        1,
        "the budget of the tree is used up: $1.50 of $1.00 are used, and the next request needs about $0.0102",
    );
    // The tighter of the two decides.
    check(Limit { tokens: Some(5_000), usd: Some(Usd::new(1.0)) }, spent(0), 1_000, "5000 Some(4000)");
}

#[test]
fn every_account_above_counts() {
    let none = Limit::default();
    let (mut accounts, [root, a, b]) = family([tokens(1_000_000), tokens(20_000), none], none);
    let first = accounts.reserve(b, 1_000, None).unwrap();
    assert_eq!(accounts.below(root).unwrap().reserved.tokens, 17_384);
    // Less than a usual reply is left, because the other one has reserved it: that may come back.
    assert_eq!(accounts.reserve(a, 1_000, None), Err(Refusal::Busy));
    assert!(accounts.reserve(root, 1_000, None).is_ok(), "nobody above is bound by it");
    accounts.settle(&first, spent(1_500));
    assert_eq!(accounts.reserve(a, 1_000, None).unwrap().max_output, None);
    let pots = [root, a, b].map(|thread| accounts.below(thread).unwrap().spent.tokens);
    assert_eq!(pots, [1_500, 1_500, 1_500]);
    let (mut accounts, [_, a, b]) = family([none, tokens(20_000), none], none);
    let first = accounts.reserve(a, 0, None).unwrap();
    accounts.settle(&first, spent(19_500));
    let refused = accounts.reserve(b, 1, None).unwrap_err().to_string();
    assert!(refused.starts_with("the budget of /root/a and everybody below it is used up"), "{refused}");
}

#[test]
fn a_single_agent_is_bounded_too() {
    let none = Limit::default();
    let (mut accounts, [_, a, b]) = family([none; 3], tokens(10_000));
    let first = accounts.reserve(a, 0, None).unwrap();
    accounts.settle(&first, spent(10_000));
    let refused = accounts.reserve(a, 1, None).unwrap_err().to_string();
    assert!(refused.starts_with("the budget of /root/a alone is used up"), "{refused}");
    assert_eq!(accounts.reserve(b, 0, None).unwrap().max_output, Some(10_000), "it has its own");
}

#[test]
fn money_needs_a_price() {
    let (mut accounts, [_, a, _]) = family([usd(1.0), Limit::default(), Limit::default()], Limit::default());
    assert_eq!(accounts.reserve(a, 10, None), Err(Refusal::NoPrice { scope: Scope::Tree }));
    assert!(accounts.reserve(a, 10, Some(PRICE)).is_ok());
    assert!(accounts.reserve(a, 10, Some(Price::default())).is_ok(), "what costs nothing has room");
}

#[test]
fn prices() {
    let usage = Usage { input: 2_000_000, cached_input: 1_000_000, output: 100_000, reasoning: 50_000 };
    assert_eq!(PRICE.of(&usage), Usd::new(1.0 + 0.1 + 1.0));
    assert_eq!(Usd::new(-1.0), Usd::default());
    assert_eq!(Usd::new(f64::NAN), Usd::default());
    assert_eq!([Usd::new(2.5), Usd::new(0.0123)].map(|usd| usd.to_string()), ["$2.50", "$0.0123"]);
}

#[test]
fn levels_are_told_once() {
    let mut told = None;
    let mut heard = Vec::new();
    for left in [90, 50, 49, 30, 24, 26, 9, 3, 80, 40] {
        let (news, now) = remind(told, left);
        heard.extend(news.map(|level| (left, level)));
        told = now;
    }
    // A budget that was raised starts again.
    assert_eq!(heard, [(49, 50), (24, 25), (9, 10), (40, 50)]);
}

#[test]
fn the_tightest_budget_stands_for_all() {
    let none = Limit::default();
    let (mut accounts, [root, a, _]) = family([tokens(100_000), usd(1.0), none], none);
    let one = accounts.reserve(a, 0, Some(PRICE)).unwrap();
    accounts.settle(&one, Spent { tokens: 60_000, usd: Usd::new(0.7) });
    let standing = accounts.standing(a).unwrap();
    assert_eq!((standing.percent, standing.used.as_str()), (30, "$0.7000 of $1.00 are used"));
    let standing = accounts.standing(root).unwrap();
    assert_eq!((standing.percent, standing.used.as_str()), (40, "60,000 of 100,000 tokens are used"));
    assert_eq!(family([none; 3], none).0.standing(root), None);
}

proptest! {
    /// Servers that keep to the bound they are given never bring a budget over its limit; others by no more than what
    /// their requests under way go beyond it.
    #[test]
    fn nobody_spends_more_than_there_is(
        limit in 1_u64..200_000,
        sub in 1_u64..200_000,
        steps in prop::collection::vec((0_usize..3, 0_u64..30_000, any::<bool>(), 0_u64..40_000), 1..60),
    ) {
        let none = Limit::default();
        let (mut accounts, ids) = family([tokens(limit), tokens(sub), none], none);
        let mut open: Vec<Reservation> = Vec::new();
        let mut beyond = 0;
        for (who, input, ends, over) in steps {
            if ends && !open.is_empty() {
                let reservation = open.remove(who % open.len());
                let over = if over % 3 == 0 { over } else { 0 };
                beyond += over;
                accounts.settle(&reservation, spent(reservation.usage.total() + over));
            } else if let Ok(reservation) = accounts.reserve(ids[who], input, None) {
                prop_assert!(reservation.max_output.is_none_or(|most| (MIN_OUTPUT..OUTPUT).contains(&most)));
                open.push(reservation);
            }
            for (thread, limit) in [(ids[0], limit), (ids[1], sub)] {
                let pot = accounts.below(thread).unwrap();
                prop_assert!(pot.spent.tokens + pot.reserved.tokens <= limit + beyond);
            }
        }
        for reservation in open {
            accounts.settle(&reservation, Spent::default());
        }
        prop_assert_eq!(accounts.below(ids[0]).unwrap().reserved, Spent::default());
    }
}
