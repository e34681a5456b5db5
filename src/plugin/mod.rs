//! [3] Id to URL and metadata.
