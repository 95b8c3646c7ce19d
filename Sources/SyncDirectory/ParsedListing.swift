/// A listing divided into names of ours and foreign ones.
package struct ParsedListing<Name: DirectoryName>: Sendable {
  /// Our names, in the order of the listing.
  package var names: [Name] = []
  /// All others, in the order of the listing.
  package var foreign: [ForeignName] = []

  /// Parses the entries. An entry with a name of ours is foreign if its kind does not fit the name.
  package init(_ entries: [DirectoryEntry]) {
    names.reserveCapacity(entries.count)
    for entry in entries {
      guard let name = Name(entry.name) else {
        foreign.append(ForeignName(name: entry.name))
        continue
      }
      if name.isFolder ? entry.mayBeFolder : entry.mayBeFile {
        names.append(name)
      } else {
        foreign.append(ForeignName(name: entry.name, reason: .wrongKind))
      }
    }
  }
}
