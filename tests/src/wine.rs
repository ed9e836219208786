//! Real data: 1599 red wines of the Wine Quality data set, which the crate `linfa-datasets` ships.
//! Each has eleven measurements and a mark from 3 to 8.

use std::sync::LazyLock;

/// Measurements of a wine.
pub const FEATURES: [&str; 11] = [
    "fixed_acidity",
    "volatile_acidity",
    "citric_acid",
    "residual_sugar",
    "chlorides",
    "free_sulfur_dioxide",
    "total_sulfur_dioxide",
    "density",
    "ph",
    "sulphates",
    "alcohol",
];

/// What is divided by what, as indices of [`FEATURES`]: tasters look at these too.
const RATIOS: [(usize, usize); 4] = [(5, 6), (1, 0), (3, 10), (9, 4)];

/// Length of a wine's vector: its measurements, its mark and four ratios of measurements, each in
/// standard deviations from the mean over all wines.
pub const DIMENSION: usize = FEATURES.len() + 1 + RATIOS.len();

/// Where a score is cut into bits.
const LEVELS: [f64; 4] = [-1.0, -0.3, 0.3, 1.0];

/// Bytes of a wine's bits: one bit for each of the vector's values and each level.
pub const BYTES: usize = DIMENSION * LEVELS.len() / 8;

/// A wine.
#[derive(Clone, Debug)]
pub struct Wine {
    /// The measurements, in the order of [`FEATURES`].
    pub features: [f64; FEATURES.len()],
    /// The mark that tasters gave.
    pub quality: i32,
    /// Measurements, mark and ratios, standardised.
    pub vector: [f32; DIMENSION],
    /// The vector in bits: wines that differ in few of them are much alike.
    pub bits: [u8; BYTES],
    /// What stands out: `high_alcohol`, `low_ph` and the like, and always the mark.
    pub tags: Vec<String>,
    /// The same in words.
    pub review: String,
}

static WINES: LazyLock<Vec<Wine>> = LazyLock::new(read);

/// All wines, in the order of the data set.
pub fn wines() -> &'static [Wine] {
    &WINES
}

/// The wine of a row: rows beyond the data set start over.
pub fn wine(row: i64) -> &'static Wine {
    let index = usize::try_from(row).unwrap_or_default() % WINES.len();
    &WINES[index]
}

fn read() -> Vec<Wine> {
    let data = linfa_datasets::winequality();
    let columns: Vec<Vec<f64>> = data
        .records
        .columns()
        .into_iter()
        .map(|column| column.to_vec())
        .chain([data.targets.iter().map(|mark| *mark as f64).collect()])
        .collect();
    let ratios = RATIOS.map(|(above, below)| ratio(&columns[above], &columns[below]));
    let columns = [columns, ratios.to_vec()].concat();
    let standardised: Vec<Vec<f64>> = columns.iter().map(|column| standardise(column)).collect();
    (0..data.targets.len())
        .map(|row| {
            let scores: [f64; DIMENSION] = std::array::from_fn(|column| standardised[column][row]);
            let quality = data.targets[row] as i32;
            Wine {
                features: std::array::from_fn(|column| columns[column][row]),
                quality,
                vector: scores.map(|score| score as f32),
                bits: bits(&scores),
                tags: tags(&scores, quality),
                review: review(&scores, quality),
            }
        })
        .collect()
}

fn ratio(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(a, b)| a / b).collect()
}

fn bits(scores: &[f64; DIMENSION]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (place, score) in scores.iter().enumerate() {
        for (level, cut) in LEVELS.iter().enumerate() {
            let bit = place * LEVELS.len() + level;
            bytes[bit / 8] |= u8::from(score > cut) << (bit % 8);
        }
    }
    bytes
}

fn standardise(column: &[f64]) -> Vec<f64> {
    let count = column.len() as f64;
    let mean = column.iter().sum::<f64>() / count;
    let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    column
        .iter()
        .map(|value| (value - mean) / variance.sqrt())
        .collect()
}

/// What is more than a standard deviation off: the measurement, and whether it is high.
fn outstanding(scores: &[f64]) -> impl Iterator<Item = (&'static str, bool)> {
    FEATURES
        .into_iter()
        .zip(scores)
        .filter(|(_, score)| score.abs() > 1.0)
        .map(|(feature, score)| (feature, *score > 0.0))
}

fn tags(scores: &[f64], quality: i32) -> Vec<String> {
    outstanding(scores)
        .map(|(feature, high)| format!("{}_{feature}", if high { "high" } else { "low" }))
        .chain([format!("quality_{quality}")])
        .collect()
}

fn review(scores: &[f64], quality: i32) -> String {
    let verdict = match quality {
        ..=4 => "a poor",
        5 | 6 => "an average",
        _ => "an excellent",
    };
    let notes: Vec<String> = outstanding(scores)
        .map(|(feature, high)| {
            let degree = if high { "remarkable" } else { "hardly any" };
            format!("{degree} {}", feature.replace('_', " "))
        })
        .collect();
    match notes.as_slice() {
        [] => format!("{verdict} wine without surprises"),
        notes => format!("{verdict} wine with {}", notes.join(" and ")),
    }
}
