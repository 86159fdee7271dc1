//! What the world can do to a server, done to a real one: damaged files, full disks, signals,
//! taken ports, senseless requests and hostile connections. Each time the answer is clear, memory
//! stays bounded, and the server goes on or refuses to start with a message that says what to do.

mod client;
mod connections;
mod damage;
mod full_disk;
mod listeners;
mod process;
mod quota;
mod requests;
mod start;
