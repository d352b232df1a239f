//! Measurements as Markdown, and the place where they stand in a page. Pure.

use super::measure::Sample;
use super::stats::Summary;

/// The lines between which a page holds the figures.
pub(super) const MARKERS: [&str; 2] = ["<!-- figures: made by cargo xtask bench -->", "<!-- end of figures -->"];

/// Everything measured of one scenario.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) samples: Vec<Sample>,
    /// What the wall time is divided by, and the name of one of them.
    pub(super) units: Option<(usize, &'static str)>,
    pub(super) reference: Option<&'static str>,
}

const HEAD: &str = "\
| scenario | wall s | CPU s | peak RSS MiB | per unit | others | the reference |
|---|---|---|---|---|---|---|
";

/// The table, a row a scenario.
pub(super) fn table(rows: &[Row]) -> String {
    HEAD.to_owned() + &rows.iter().map(line).collect::<String>()
}

fn line(row: &Row) -> String {
    let of = |value: fn(&Sample) -> Option<f64>| {
        let values: Option<Vec<f64>> = row.samples.iter().map(value).collect();
        values.and_then(|values| Summary::of(&values))
    };
    let shown = |summary: Option<Summary>, digits: usize| {
        summary.map_or_else(|| "-".to_owned(), |summary| format!("{summary:.digits$}"))
    };
    let wall = of(|sample| Some(sample.wall));
    let first = of(|sample| sample.first);
    let resting = of(|sample| sample.resting);
    let after = of(|sample| sample.first.map(|first| sample.wall - first));
    let begins = |first: Summary| format!("{} to the first request", duration(first.median));
    let per = match (wall, row.units) {
        _ if resting.is_some() => format!("{:.1} KiB / agent", resting.map_or(0.0, |resting| resting.median)),
        (_, Some((units, name))) if first.is_some() => {
            let each = after.map_or(0.0, |after| after.median / as_f64(units));
            format!("{}, then {} / {name}", first.map(begins).unwrap_or_default(), duration(each))
        }
        _ if first.is_some() => first.map(begins).unwrap_or_default(),
        (Some(wall), Some((units, name))) => {
            let written = of(|sample| sample.written).map_or_else(String::new, |written| {
                format!(", {:.1} kB of rollouts / {name}", written.median / as_f64(units) / 1e3)
            });
            format!("{} / {name}{written}", duration(wall.median / as_f64(units)))
        }
        _ => "-".to_owned(),
    };
    let walls: f64 = row.samples.iter().map(|sample| sample.wall).sum();
    let others: f64 = row.samples.iter().map(|sample| sample.others).sum();
    format!(
        "| {} | {} | {} | {} | {per} | {:.2} | {} |\n",
        row.name,
        shown(wall, 3),
        shown(of(|sample| Some(sample.cpu)), 2),
        shown(of(|sample| sample.peak), 0),
        if walls > 0.0 { others / walls } else { 0.0 },
        row.reference.unwrap_or("-"),
    )
}

/// A short time with three figures or so.
fn duration(seconds: f64) -> String {
    if seconds >= 1e-3 { format!("{:.1} ms", seconds * 1e3) } else { format!("{:.0} us", seconds * 1e6) }
}

/// Whole numbers of this program are far below where a float is not exact.
#[expect(clippy::cast_precision_loss, reason = "counts and bytes of a benchmark are below 2^52")]
pub(super) fn as_f64(number: usize) -> f64 {
    number as f64
}

/// `page` with `figures` between its markers, instead of what stood there. None when it has no markers.
pub(super) fn put(page: &str, figures: &str) -> Option<String> {
    let [begin, end] = MARKERS;
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n\n{}\n\n{end}{after}", figures.trim()))
}
