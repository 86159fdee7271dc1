//! The names: directories as they are, as they are durable, and the changes in between.

use super::image::Content;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Component, Path};

pub type NodeId = u64;

pub enum Node {
    File(Content),
    Dir(Dir),
}

#[derive(Default)]
pub struct Dir {
    names: BTreeMap<String, NodeId>,
    durable: BTreeMap<String, NodeId>,
    /// Since the last sync. A rename within the directory is one change.
    changes: Vec<Change>,
}

#[derive(Clone)]
struct Change {
    unset: Option<String>,
    set: Option<(String, NodeId)>,
}

impl Change {
    fn make(self, names: &mut BTreeMap<String, NodeId>) {
        if let Some(name) = self.unset {
            names.remove(&name);
        }
        if let Some((name, node)) = self.set {
            names.insert(name, node);
        }
    }
}

impl Dir {
    fn change(&mut self, change: Change) {
        change.clone().make(&mut self.names);
        self.changes.push(change);
    }
}

pub struct Tree {
    nodes: BTreeMap<NodeId, Node>,
    /// Nodes with open files, which stay when their name goes.
    held: BTreeMap<NodeId, usize>,
    next: NodeId,
}

const ROOT: NodeId = 0;

impl Default for Tree {
    fn default() -> Self {
        let nodes = BTreeMap::from([(ROOT, Node::Dir(Dir::default()))]);
        Tree { nodes, held: BTreeMap::new(), next: ROOT + 1 }
    }
}

impl Tree {
    pub fn find(&self, path: &Path) -> io::Result<NodeId> {
        let mut node = ROOT;
        for name in names(path)? {
            let Some(Node::Dir(dir)) = self.nodes.get(&node) else {
                return Err(ErrorKind::NotADirectory.into());
            };
            node = *dir.names.get(&name).ok_or(ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    pub fn file(&mut self, node: NodeId) -> io::Result<&mut Content> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(content)) => Ok(content),
            Some(Node::Dir(_)) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    pub fn create(&mut self, path: &Path, node: Node) -> io::Result<NodeId> {
        let (parent, name) = self.parent(path)?;
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, node);
        self.dir(parent)?.change(Change { unset: None, set: Some((name, id)) });
        Ok(id)
    }

    pub fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let mut done = std::path::PathBuf::new();
        for name in names(path)? {
            done.push(name);
            match self.find(&done) {
                Ok(node) => self.dir(node).map(drop)?,
                Err(_) => self.create(&done, Node::Dir(Dir::default())).map(drop)?,
            }
        }
        Ok(())
    }

    pub fn list(&mut self, dir: &Path) -> io::Result<Vec<String>> {
        let node = self.find(dir)?;
        Ok(self.dir(node)?.names.keys().cloned().collect())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        let (old_parent, old_name) = self.parent(from)?;
        let (new_parent, new_name) = self.parent(to)?;
        if let Ok(replaced) = self.find(to)
            && self.dir(replaced).is_ok_and(|dir| !dir.names.is_empty())
        {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        let (unset, set) = (Some(old_name), Some((new_name, node)));
        if old_parent == new_parent {
            self.dir(old_parent)?.change(Change { unset, set });
        } else {
            self.dir(new_parent)?.change(Change { unset: None, set });
            self.dir(old_parent)?.change(Change { unset, set: None });
        }
        Ok(())
    }

    pub fn unlink(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        let (parent, name) = self.parent(path)?;
        self.dir(parent)?.change(Change { unset: Some(name), set: None });
        Ok(())
    }

    pub fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let node = self.find(dir)?;
        let dir = self.dir(node)?;
        dir.changes.clear();
        dir.durable = dir.names.clone();
        self.forget_unreachable();
        Ok(())
    }

    /// Everything becomes what of it is durable, and what of the rest is chosen (see
    /// [`Content::settle`]).
    pub fn crash(&mut self, mut choose: impl FnMut(usize) -> usize) {
        self.held.clear();
        for node in self.nodes.values_mut() {
            match node {
                Node::File(content) => {
                    content.settle(&mut choose);
                    content.reread();
                }
                Node::Dir(dir) => {
                    let changes = std::mem::take(&mut dir.changes);
                    let survived = choose(changes.len());
                    for change in changes.into_iter().take(survived) {
                        change.make(&mut dir.durable);
                    }
                    dir.names = dir.durable.clone();
                }
            }
        }
        self.forget_unreachable();
    }

    /// Only open files and their locks go.
    pub fn kill(&mut self) {
        self.held.clear();
        for node in self.nodes.values_mut() {
            if let Node::File(content) = node {
                content.lock = None;
            }
        }
    }

    pub fn hold(&mut self, node: NodeId) {
        *self.held.entry(node).or_default() += 1;
    }

    pub fn let_go(&mut self, node: NodeId) {
        if let Some(count) = self.held.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&node);
            }
        }
    }

    /// The space of all files that have a name or are open.
    pub fn space(&self) -> u64 {
        let space = |node: &NodeId| match self.nodes.get(node) {
            Some(Node::File(content)) => content.space(),
            _ => 0,
        };
        let mut nodes: BTreeSet<NodeId> = self.held.keys().copied().collect();
        let mut dirs = vec![ROOT];
        while let Some(dir) = dirs.pop() {
            let Some(Node::Dir(dir)) = self.nodes.get(&dir) else { continue };
            nodes.extend(dir.names.values());
            dirs.extend(dir.names.values());
        }
        nodes.iter().map(space).sum()
    }

    fn dir(&mut self, node: NodeId) -> io::Result<&mut Dir> {
        match self.nodes.get_mut(&node) {
            Some(Node::Dir(dir)) => Ok(dir),
            _ => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn parent(&self, path: &Path) -> io::Result<(NodeId, String)> {
        let mut names = names(path)?;
        let name = names.pop().ok_or(ErrorKind::InvalidInput)?;
        Ok((self.find(&names.iter().collect::<std::path::PathBuf>())?, name))
    }

    /// Drops nodes that no name leads to, neither now nor after any crash.
    fn forget_unreachable(&mut self) {
        let mut reached: BTreeSet<NodeId> = self.held.keys().copied().collect();
        let mut left = vec![ROOT];
        while let Some(node) = left.pop() {
            reached.insert(node);
            let Some(Node::Dir(dir)) = self.nodes.get(&node) else { continue };
            let changed = dir.changes.iter().filter_map(|change| change.set.as_ref());
            left.extend(dir.names.values().chain(dir.durable.values()));
            left.extend(changed.map(|(_, node)| node));
        }
        self.nodes.retain(|node, _| reached.contains(node));
    }
}

/// The names on a path. There is no working directory here: every path begins at the root.
fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                names.push(name.to_str().ok_or(ErrorKind::InvalidInput)?.to_string());
            }
            Component::ParentDir | Component::Prefix(_) => {
                return Err(ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(names)
}
