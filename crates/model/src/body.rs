//! A request's body, and how much of it the next one begins with.

/// A body in the making.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// The JSON.
    pub(crate) json: String,
    /// How many bytes of it stay the same, whatever the conversation becomes: all but the marks that close it, and
    /// the note that asks a model to go on.
    pub(crate) kept: usize,
}

impl Body {
    /// Says that what stands here stays.
    pub(crate) fn keep(&mut self) {
        self.kept = self.json.len();
    }
}

impl std::ops::AddAssign<&str> for Body {
    fn add_assign(&mut self, text: &str) {
        self.json.push_str(text);
    }
}
