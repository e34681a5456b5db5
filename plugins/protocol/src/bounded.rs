//! Lists with a cap, so that no reply becomes much more memory than its line.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

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
