/// The check of a record that an adapter reports.
struct RecordCheck {
  let schema: ModelSchema

  /// Returns what is wrong with a record, or `nil`.
  func problem(with record: ModelRecord) -> ModelReport.Problem? {
    func problem(
      _ kind: ModelReport.Problem.Kind, _ message: String, _ remedy: String
    ) -> ModelReport.Problem {
      .init(
        kind: kind, record: record.id, message: message + " The record is not taken.",
        remedy: remedy)
    }
    if let problem = self.problem(with: record.id) { return problem }
    let type = schema.type(record.id.type)
    for (name, value) in record.fields.sorted(by: { $0.key < $1.key }) {
      guard let field = type?.fields.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
        return problem(
          .unknownField, "The schema has no field “\(name)” in “\(record.id.type)”.",
          "Declare the field, or do not report it.")
      }
      if let reason = Self.unsuitability(of: value, field.kind) {
        return problem(
          .unsuitableValue, "The value of “\(name)” \(reason).",
          "Report a value of the kind that the schema declares.")
      }
    }
    return nil
  }

  /// Returns what is wrong with the name of a record, or `nil`.
  func problem(with id: ModelRecord.ID) -> ModelReport.Problem? {
    guard schema.type(id.type) != nil else {
      return .init(
        kind: .unknownType, record: id,
        message: "The schema has no type “\(id.type)”. The record is not taken.",
        remedy: "Declare the type, or do not report its records.")
    }
    guard !id.identity.isEmpty, !id.identity.utf8.contains(0), id.identity.utf8.count <= 1024 else {
      return .init(
        kind: .unsuitableIdentity, record: id,
        message:
          "The identity of the record is empty, contains NUL, or has more than 1024 bytes. The "
          + "record is not taken.",
        remedy: "Give the record an identity of its own, such as a UUID.")
    }
    return nil
  }

  private static func unsuitability(
    of value: ModelValue, _ kind: ModelSchema.Field.Kind
  ) -> String? {
    switch (value, kind) {
    case (.integer, .integer), (.data, .data): nil
    case (.real(let number), .real): number.isNaN ? "is NaN" : nil
    case (.text(let text), .text): text.utf8.contains(0) ? "contains NUL" : nil
    case (.reference(let id), .reference(let type, _)):
      if !id.type.utf8.elementsEqual(type.utf8) {
        "refers to “\(id.type)”, not to “\(type)”"
      } else {
        id.identity.isEmpty || id.identity.utf8.contains(0)
          ? "refers to an empty identity, or one with NUL" : nil
      }
    default: "is not of the kind that the schema declares"
    }
  }
}
