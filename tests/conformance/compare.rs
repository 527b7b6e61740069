//! Holds the same conversation with two servers, and finds their first difference.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::plant::Plant;
use crate::side::{Transcript, converse};
use crate::step::Step;

/// The two servers, and the change of the second one's answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) real: SocketAddr,
    pub(crate) other: SocketAddr,
    pub(crate) plant: Plant,
    /// Whether they are of 3.4.
    pub(crate) is_old: bool,
}

/// The answers of both, and the step at which they differ.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) real: Transcript,
    pub(crate) other: Transcript,
    pub(crate) difference: Option<usize>,
}

impl Pair {
    pub(crate) fn converse(&self, slots: usize, steps: &[Step]) -> Outcome {
        // Each run has a separate tree, because not everything can be deleted after it.
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (real, other) = thread::scope(|scope| {
            let other = scope.spawn(|| converse(self.other, slots, steps, number, self.plant, self.is_old));
            let real = converse(self.real, slots, steps, number, Plant::Nothing, self.is_old);
            (real, other.join().expect("a conversation with the other server"))
        });
        let difference = (0..steps.len()).find(|&index| real[index] != other[index]);
        Outcome { real, other, difference }
    }

    /// Like [`converse`](Self::converse). Servers of 3.4 end sessions at a time of their choice, so with them a difference must
    /// show twice.
    pub(crate) fn converse_surely(&self, slots: usize, steps: &[Step]) -> Outcome {
        let outcome = self.converse(slots, steps);
        if self.is_old && outcome.difference.is_some() { self.converse(slots, steps) } else { outcome }
    }
}

impl Outcome {
    /// Prints the conversation up to the difference, for people.
    pub(crate) fn print(&self, steps: &[Step]) {
        let end = self.difference.unwrap_or(steps.len() - 1);
        for (index, step) in steps.iter().enumerate().take(end + 1) {
            println!("    {:>3} {step}", index + 1);
            // The transactions that clients see are only reported if they differ.
            let (real, other) = (&self.real[index], &self.other[index]);
            for line in real {
                if !other.contains(line) {
                    println!("          real:  {line}");
                } else if !line.contains("] sees ") {
                    println!("                 {line}");
                }
            }
            for line in other.iter().filter(|line| !real.contains(line)) {
                println!("          other: {line}");
            }
            if real != other && real.iter().all(|line| other.contains(line)) && real.len() == other.len() {
                println!("          in another order: {other:?}");
            }
        }
    }
}
