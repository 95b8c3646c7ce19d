import SyncDirectory
import SyncModel
import Testing

/// What verifying finds in a directory, by kind and path.
struct Found: Hashable, CustomStringConvertible {
  var kind: VerifyReport.Finding.Kind
  var path: String

  init(_ kind: VerifyReport.Finding.Kind, _ path: RelativePath) {
    self.kind = kind
    self.path = path.description
  }

  init(_ finding: VerifyReport.Finding) {
    kind = finding.kind
    path = finding.path ?? ""
  }

  var description: String { "\(kind) at \(path)" }
}

/// One kind of damage, and all that is to be found of it.
struct Damage: Sendable, CustomTestStringConvertible {
  var name: String
  var make: @Sendable (DamagedDirectory) throws -> [Found]
  var testDescription: String { name }

  init(_ name: String, _ make: @escaping @Sendable (DamagedDirectory) throws -> [Found]) {
    self.name = name
    self.make = make
  }
}
