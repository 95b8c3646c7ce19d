import SyncModel

/// The numbers up to which the files of a client may be vacuumed, and the
/// member that prevents more: a pure function of markers.
struct ClearingLimits {
  /// One member with its marker.
  struct Word {
    var member: ClientIdentifier
    /// The marker; `nil` if it could not be read.
    var marker: Said?
  }

  /// The parts of a marker that count for the limits.
  struct Said {
    var applied: VersionVector
    var commands: VersionVector
    var wholeStores: [RecentSyncFile.WholeStore]
  }

  /// A number, and the reason why it is not higher.
  struct Limit: Hashable {
    var number: UInt64
    var reason: String
    var member: ClientIdentifier?

    mutating func lower(to other: UInt64, _ reason: String, _ member: ClientIdentifier?) {
      guard other < number else { return }
      self = Limit(number: other, reason: reason, member: member)
    }
  }

  /// The members with their markers, including this store.
  let words: [Word]

  /// Returns the limit for change sets of `owner`, whose last is `head`: every
  /// member has durably applied them with the hash that counts, and every whole
  /// store that a member lists contains them. There has to be a whole store.
  ///
  /// - Parameter hash: Returns the hash that counts for a number; `nil` if it
  ///   is unknown: then a member's marker proves nothing.
  func changeSets(
    of owner: ClientIdentifier, head: UInt64, hash: (UInt64) -> ContentHash?
  ) -> Limit {
    var limit = Limit(number: head, reason: "", member: nil)
    for word in words where word.member != owner {
      guard let said = word.marker else {
        limit.lower(to: 0, "its marker cannot be read", word.member)
        continue
      }
      guard let entry = said.applied[owner], entry.number > 0 else {
        limit.lower(to: 0, "it has applied none of them", word.member)
        continue
      }
      if let known = hash(entry.number), known == entry.hash {
        limit.lower(to: entry.number, "it has applied them up to \(entry.number)", word.member)
      } else {
        limit.lower(to: 0, "it has applied another change set of that number", word.member)
      }
    }
    lower(&limit) { $0.vector.number(of: owner) }
    return limit
  }

  /// Returns the limit for commands of `owner`, in the same way.
  func commands(of owner: ClientIdentifier, head: UInt64) -> Limit {
    var limit = Limit(number: head, reason: "", member: nil)
    for word in words where word.member != owner {
      limit.lower(
        to: word.marker?.commands.number(of: owner) ?? 0, "it has not processed them",
        word.member)
    }
    lower(&limit) { $0.commands.number(of: owner) }
    return limit
  }

  private func lower(_ limit: inout Limit, to number: (RecentSyncFile.WholeStore) -> UInt64) {
    var isOne = false
    for word in words {
      for store in word.marker?.wholeStores ?? [] {
        isOne = true
        limit.lower(
          to: number(store),
          "whole store \(store.number) of \(store.client), which it lists, "
            + "contains less", word.member)
      }
    }
    if !isOne { limit.lower(to: 0, "no member has checked a whole store yet", nil) }
  }
}
