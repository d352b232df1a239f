//! What a patch says, once it is read.

/// A whole patch: one section a file, in the order in which they are applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub(crate) sections: Vec<Section>,
}

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The file, as the patch spells it: never empty, without NUL, not resolved.
    pub path: String,
    /// What happens to it.
    pub action: Action,
    /// Line of the section's header in the patch text, counted from 1.
    pub line: usize,
}

/// The four things that can happen to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A file that does not exist yet gets these lines.
    Add(Vec<String>),
    /// A file that exists loses its content and gets these lines: Delete and Add of one path.
    Replace(Vec<String>),
    /// A file that exists is removed.
    Delete,
    /// Parts of a file that exists change.
    Update {
        /// Where the file goes; `None` leaves it where it is.
        move_to: Option<String>,
        /// The changes, in the order of the file. Empty only for a pure move.
        chunks: Vec<Chunk>,
    },
}

/// One connected change within a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Lines of the file that narrow the place down, outermost first.
    pub anchors: Vec<String>,
    /// Context, removals and additions. Never empty.
    pub lines: Vec<Line>,
    /// Whether the old lines have to be the last ones of the file.
    pub at_end: bool,
    /// How many lines at the end of `lines` were wholly empty in the patch text. They may be context or mere
    /// spacing before the next marker, so they are dropped one by one while the chunk is not found with them.
    pub loose: usize,
    /// Line in the patch text where the chunk begins, counted from 1.
    pub line: usize,
}

/// One line of a chunk, without its mark and without line ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Stays.
    Context(String),
    /// Goes.
    Remove(String),
    /// Comes.
    Add(String),
}

impl Patch {
    /// The sections, in the order in which they are applied.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Every path that the patch reads or writes, targets of moves included, each once, in the order of the patch.
    /// These are the keys of an approval.
    pub fn paths(&self) -> Vec<&str> {
        self.sections.iter().flat_map(Section::paths).collect()
    }
}

impl Section {
    /// The path of the section and, for a move, its target.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let target = match &self.action {
            Action::Update { move_to, .. } => move_to.as_deref(),
            _ => None,
        };
        std::iter::once(self.path.as_str()).chain(target)
    }
}

impl Line {
    /// The text, if the line is in the file before the change.
    pub fn old(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Remove(text) => Some(text),
            Self::Add(_) => None,
        }
    }

    /// The text, if the line is in the file after the change.
    pub fn new_text(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Add(text) => Some(text),
            Self::Remove(_) => None,
        }
    }
}
