//! Names for people. They are not addresses and need not be unique for ever.

/// The built-in names: rivers, trees, stones and birds, all short enough for a narrow column.
pub const NICKNAMES: [&str; 112] = [
    "Agate", "Alder", "Amber", "Arno", "Aspen", "Avon", "Basalt", "Beech", "Beryl", "Birch", "Bittern", "Boyne",
    "Cedar", "Chalk", "Clyde", "Coral", "Crane", "Curlew", "Cypress", "Danube", "Dee", "Dipper", "Dniester", "Douro",
    "Drava", "Dunlin", "Ebro", "Egret", "Eider", "Elbe", "Elder", "Elm", "Ems", "Finch", "Fir", "Flint", "Gabbro",
    "Galena", "Gannet", "Garnet", "Garonne", "Ginkgo", "Gneiss", "Godwit", "Granite", "Grebe", "Hazel", "Hemlock",
    "Heron", "Holly", "Humber", "Ibis", "Indus", "Inn", "Isar", "Jackdaw", "Jade", "Jasper", "Jay", "Juniper", "Kama",
    "Kestrel", "Lapwing", "Larch", "Lark", "Lena", "Linden", "Linnet", "Loire", "Main", "Maple", "Marble", "Martin",
    "Medlar", "Meuse", "Mica", "Mosel", "Neva", "Oder", "Olive", "Onyx", "Opal", "Osprey", "Ouse", "Petrel", "Pine",
    "Plover", "Pumice", "Pyrite", "Quartz", "Rhine", "Robin", "Rowan", "Ruby", "Saale", "Sava", "Schist", "Severn",
    "Shale", "Siskin", "Slate", "Spey", "Spruce", "Talc", "Tern", "Tisza", "Topaz", "Volga", "Weser", "Willow", "Wren",
    "Yew",
];

/// A nickname that is not among `used`: of `candidates` (of the built-in names when there are none) the one that
/// `seed` points at; when all are taken, one of them again as `the 2nd`, `the 3rd` and so on.
pub fn nickname(used: &[String], seed: u64, candidates: &[String]) -> String {
    let pool: Vec<&str> =
        if candidates.is_empty() { NICKNAMES.to_vec() } else { candidates.iter().map(String::as_str).collect() };
    let mut round: u64 = 1;
    loop {
        let names = pool.iter().map(|name| again(name, round));
        let free: Vec<String> = names.filter(|name| !used.contains(name)).collect();
        // Ends: each round has names of its own, and `used` is finite.
        if !free.is_empty() {
            let at = usize::try_from(seed % free.len() as u64).unwrap_or_default();
            return free.into_iter().nth(at).unwrap_or_default();
        }
        round += 1;
    }
}

fn again(name: &str, round: u64) -> String {
    if round == 1 { name.to_owned() } else { format!("{name} the {round}{}", ordinal(round)) }
}

/// The ending of an English ordinal: 1st, 2nd, 3rd, 4th, but 11th to 13th.
fn ordinal(n: u64) -> &'static str {
    match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests;
