//! Slots, loading and unloading, mail and closing, under many schedules.

mod queue;
mod scene;
mod trees;
