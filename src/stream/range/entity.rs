//! Whether two answers are about the same file.

/// What tells one version of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::stream) struct Entity {
    /// Length in bytes.
    pub total: Option<u64>,
    /// Only a strong one: a weak one does not promise equal bytes.
    pub etag: Option<String>,
    /// As the server wrote it.
    pub last_modified: Option<String>,
}

impl Entity {
    /// A weak or malformed tag counts as none.
    pub fn new(total: Option<u64>, etag: Option<&str>, last_modified: Option<&str>) -> Self {
        let strong = |tag: &&str| tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"');
        Entity {
            total,
            etag: etag.map(str::trim).filter(strong).map(str::to_owned),
            last_modified: last_modified.map(|value| value.trim().to_owned()),
        }
    }

    /// What to send as `If-Range`.
    pub fn validator(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }

    /// What differs, if anything proves that `other` is not the same file. A server that leaves a validator
    /// out of a partial answer is believed: it was sent `If-Range`, and 206 means that it matched.
    pub fn difference(&self, other: &Entity) -> Option<String> {
        if let (Some(ours), Some(theirs)) = (self.total, other.total)
            && ours != theirs
        {
            return Some(format!("its length went from {ours} to {theirs} bytes"));
        }
        match (&self.etag, &other.etag) {
            (Some(ours), Some(theirs)) if ours != theirs => Some("its ETag changed".to_owned()),
            (Some(_), Some(_)) => None,
            _ => match (&self.last_modified, &other.last_modified) {
                (Some(ours), Some(theirs)) if ours != theirs => Some("its date changed".to_owned()),
                _ => None,
            },
        }
    }

    /// Takes over what was not known yet.
    pub fn complete_from(&mut self, other: Entity) {
        self.total = self.total.or(other.total);
        self.etag = self.etag.take().or(other.etag);
        self.last_modified = self.last_modified.take().or(other.last_modified);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_tags_are_no_proof_and_dates_stand_in_for_them() {
        let ours = Entity::new(None, Some("W/\"a\""), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        assert_eq!(ours.validator(), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        let other = Entity::new(None, Some("W/\"b\""), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        assert_eq!(ours.difference(&other), None);
        let later = Entity::new(None, Some("W/\"a\""), Some("Tue, 02 Jan 2024 00:00:00 GMT"));
        assert!(ours.difference(&later).is_some());
    }

    #[test]
    fn a_strong_tag_decides_over_the_date() {
        let ours = Entity::new(None, Some("\"a\""), Some("Mon, 01 Jan 2024 00:00:00 GMT"));
        let touched = Entity::new(None, Some("\"a\""), Some("Tue, 02 Jan 2024 00:00:00 GMT"));
        assert_eq!(ours.difference(&touched), None);
        assert!(ours.difference(&Entity::new(None, Some("\"b\""), None)).is_some());
    }
}
