//! [1] What the outside may ask and see.
