/// An immutable set of changes by one client.
///
/// Change sets are numbered 1, 2, 3… with no gap. Each contains the hash of its
/// predecessor's file, so that a client's change sets form a chain.
package struct SyncChangeSet: Hashable, Sendable {
  /// The part that anyone may read: document, author and number.
  package struct Header: Hashable, Sendable {
    /// The shared directory.
    package var root: RootIdentifier
    /// The document to which the change set belongs.
    package var document: DocumentName
    /// The generation of the document.
    package var generation: IntegrityKey
    /// The author.
    package var client: ClientIdentifier
    /// The number among the author's change sets, from 1.
    package var number: UInt64
    /// The hash of the author's previous file; for number 1 the hash of the
    /// ancestor's last file, or `nil` if there was none.
    package var previous: ContentHash?

    /// Creates a header from its parts.
    package init(
      root: RootIdentifier, document: DocumentName, generation: IntegrityKey,
      client: ClientIdentifier, number: UInt64, previous: ContentHash?
    ) {
      self.root = root
      self.document = document
      self.generation = generation
      self.client = client
      self.number = number
      self.previous = previous
    }
  }

  /// The document, author and number.
  package var header: Header
  /// The change sets of other clients that the author had applied. The author's own follow from the
  /// number.
  package var dependencies: VersionVector
  /// The SHA-256 of the author's schema, as described by `StoreSchema`.
  package var schema: ContentHash
  /// The changes, parents before children where the schema allows it.
  package var tables: [TableChanges]

  /// Creates a change set from its parts.
  package init(
    header: Header, dependencies: VersionVector, schema: ContentHash, tables: [TableChanges]
  ) {
    self.header = header
    self.dependencies = dependencies
    self.schema = schema
    self.tables = tables
  }

  /// The number of changed rows.
  package var rowCount: Int { tables.reduce(0) { $0 + $1.count } }

  /// About how much memory the changes take.
  package var byteCount: Int { tables.reduce(0) { $0 + $1.byteCount } }

  /// The least and the greatest time of its changes; `nil` if it is empty.
  package var timeRange: ClosedRange<HybridTime>? {
    var least = HybridTime(rawValue: .max)
    var greatest = HybridTime.zero
    for table in tables {
      for time in table.times {
        least = min(least, time)
        greatest = max(greatest, time)
      }
      for exception in table.exceptions {
        least = min(least, exception.stamp.time)
        greatest = max(greatest, exception.stamp.time)
      }
    }
    return least <= greatest ? least...greatest : nil
  }
}
