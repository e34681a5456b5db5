//! Lists and texts with a cap, so that no reply becomes much more memory than its line, and nothing of it that is
//! kept is large.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A list of at most `N` items; more are an error.
pub(crate) fn up_to<'de, const N: usize, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Items<const N: usize, T>(PhantomData<T>);

    impl<'de, const N: usize, T: Deserialize<'de>> Visitor<'de> for Items<N, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {N} items")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = list.next_element()? {
                if items.len() == N {
                    return Err(A::Error::custom(format_args!("a list has more than {N} items")));
                }
                items.push(item);
            }
            Ok(items)
        }
    }

    deserializer.deserialize_seq(Items::<N, T>(PhantomData))
}

/// A text of `MIN` to `MAX` characters.
pub(crate) fn text<'de, const MIN: usize, const MAX: usize, D>(deserializer: D) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    fitting::<MIN, MAX, D::Error>(String::deserialize(deserializer)?)
}

/// The same, or null.
pub(crate) fn optional_text<'de, const MIN: usize, const MAX: usize, D>(
    deserializer: D,
) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Option::<String>::deserialize(deserializer)?.map(fitting::<MIN, MAX, D::Error>).transpose()
}

/// At most `N` texts of `MIN` to `MAX` characters.
pub(crate) fn texts<'de, const N: usize, const MIN: usize, const MAX: usize, D>(
    deserializer: D,
) -> Result<Vec<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts: Vec<String> = up_to::<N, _, _>(deserializer)?;
    texts.into_iter().map(fitting::<MIN, MAX, D::Error>).collect()
}

/// At most `N` texts by name.
pub(crate) fn texts_by_name<'de, const N: usize, D>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    struct Texts<const N: usize>;

    impl<'de, const N: usize> Visitor<'de> for Texts<N> {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {N} texts by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut texts = BTreeMap::new();
            while let Some((name, text)) = map.next_entry()? {
                texts.insert(name, text);
                if texts.len() > N {
                    return Err(A::Error::custom(format_args!("more than {N} texts by name")));
                }
            }
            Ok(texts)
        }
    }

    deserializer.deserialize_map(Texts::<N>)
}

fn fitting<const MIN: usize, const MAX: usize, E: Error>(text: String) -> Result<String, E> {
    let count = text.chars().take(MAX + 1).count();
    if (MIN..=MAX).contains(&count) {
        return Ok(text);
    }
    Err(E::custom(format_args!("a text must have {MIN} to {MAX} characters, and one has {count} or more")))
}
