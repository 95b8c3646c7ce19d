import SyncModel

/// The policies of a device, as printed.
struct PoliciesJSON: Encodable, Sendable {
  var document: String
  var tables: NamedValues<String>
  var columns: NamedValues<NamedValues<String>>

  init(_ policies: SyncPolicies) {
    document = policies.document.description
    tables = NamedValues(policies.tables.mapValues(\.description))
    columns = NamedValues(
      policies.columns.mapValues { NamedValues($0.mapValues(\.description)) })
  }
}
