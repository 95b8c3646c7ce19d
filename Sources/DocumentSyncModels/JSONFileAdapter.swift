import Foundation

/// An object of an application's model that can be a record.
///
/// An element has all fields that the schema declares for its type: the record that ``init(modelRecord:)`` gets
/// is the one that ``modelRecord`` returns. If the model has objects of several types, let an enumeration be
/// the element.
///
/// If a later version of the application adds a field, an element that was coded without it has null in that field, and no default
/// value: else each record counts as edited, and the default replaces what other devices have in the field.
public protocol ModelElement: Codable, Sendable {
  /// Creates the element from a record of another device. Throws if the application cannot have it.
  init(modelRecord: ModelRecord) throws
  /// The element as a record.
  var modelRecord: ModelRecord { get }
}

/// A model in a JSON file: a collection of elements.
///
/// The file has an object with the `elements`, and beside them the records that were reported. The adapter finds edits
/// by comparing the two, so it also finds those of other programs. Other members of the object stay as they
/// are. Each write replaces the file as a whole. All elements are in memory, and are compared with each
/// synchronization: for thousands of them, not for millions.
///
/// Adapters of one file wait for one another, also in several processes. If another program writes the file while the
/// adapter works on it, the adapter reads it again. Between the last look and the replacement there is a moment
/// in which what such a program writes is lost. Texts stand for numbers that JSON does not have: `inf`, `-inf` and `nan`.
public actor JSONFileAdapter<Element: ModelElement>: ModelAdapter {
  /// An error of the file.
  public struct Failure: Error, CustomStringConvertible {
    /// What is wrong, in which file, and what to do.
    public let description: String
  }

  private struct Content: Codable {
    var elements: [Element] = []
    /// The records as they were reported or imported last.
    var reported: [ModelRecord] = []
    var lastImport: ModelImport?
    /// The other members of the file, which other programs have written.
    var others: [String: JSONValue] = [:]

    init() {}

    /// The file has what an adapter has recorded, and no elements.
    struct ElementsMissing: Error {}

    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: JSONValue.Name.self)
      if let elements = try values.decodeIfPresent([Element].self, forKey: "elements") {
        self.elements = elements
      } else if values.contains("reported") || values.contains("lastImport") {
        // It would look as if the application had deleted all of them.
        throw ElementsMissing()
      }
      // A file that another program has made has only elements.
      reported = try values.decodeIfPresent([ModelRecord].self, forKey: "reported") ?? []
      lastImport = try values.decodeIfPresent(ModelImport.self, forKey: "lastImport")
      for name in values.allKeys
      where !["elements", "reported", "lastImport"].contains(name.stringValue) {
        others[name.stringValue] = try values.decode(JSONValue.self, forKey: name)
      }
    }

    func encode(to encoder: any Encoder) throws {
      var values = encoder.container(keyedBy: JSONValue.Name.self)
      for (name, value) in others { try values.encode(value, forKey: .init(stringLiteral: name)) }
      try values.encode(elements, forKey: "elements")
      try values.encode(reported, forKey: "reported")
      try values.encodeIfPresent(lastImport, forKey: "lastImport")
    }
  }

  /// What tells one state of the file from another.
  private struct Stamp: Equatable {
    var file: UInt64
    var size: UInt64
    var date: Date
  }

  private let path: String
  private let timeLimit: Duration
  private var read: (stamp: Stamp, content: Content)?
  private var pending: [ModelRecord.ID: Element?] = [:]
  /// The last import when the one under way began.
  private var former: ModelImport?

  /// Creates the adapter of a file. If there is no file, the model is empty, and the first edit makes it.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - timeLimit: How long a write waits while other adapters write files in the same folder, before it fails.
  public init(path: String, timeLimit: Duration = .seconds(30)) {
    self.path = path
    self.timeLimit = timeLimit
  }

  /// Returns the elements as they are in the file.
  public func elements() throws -> [Element] { try load().elements }

  /// Edits the elements, as the application does, and writes the file. If another program has written the file
  /// meanwhile, calls `edit` again with what is there then.
  ///
  /// If it throws an error of the system, such as that of a full disk, the file may have the edit already: the
  /// last step makes the file durable. Look at ``elements()`` before you repeat an edit that counts twice.
  public func update<Output>(_ edit: (inout [Element]) throws -> Output) throws -> Output {
    try modify { content in
      let output = try edit(&content.elements)
      _ = try index(content.elements)
      return output
    }
  }

  // MARK: The file

  /// The file itself, if the path is a link to it.
  private var file: URL { URL(fileURLWithPath: path).resolvingSymlinksInPath() }

  private func load() throws -> Content { try loadStamped().content }

  /// Returns the content, and the stamp that the file had before it was read.
  private func loadStamped() throws -> (stamp: Stamp?, content: Content) {
    guard let stamp = try stamp() else { return (nil, Content()) }
    if let read, read.stamp == stamp { return (stamp, read.content) }
    let content: Content
    do {
      content = try Self.decoder.decode(Content.self, from: Data(contentsOf: file))
    } catch is Content.ElementsMissing {
      throw Failure(
        description: "\(path) has no “elements”, although an adapter has written it. Put back a "
          + "copy of the file. If all elements were deleted, let “elements” be an empty list.")
    } catch let error as DecodingError {
      throw Failure(
        description: "\(path) cannot be read: \(error). Mend the file, or put back a copy of it.")
    }
    read = (stamp, content)
    return (stamp, content)
  }

  /// Changes the content and writes it durably. Begins again if another program writes the file
  /// meanwhile.
  private func modify<Output>(_ change: (inout Content) throws -> Output) throws -> Output {
    let folder: FolderLock
    do {
      folder = try FolderLock(file.deletingLastPathComponent().path, timeLimit: timeLimit)
    } catch is FolderLock.Busy {
      throw Failure(
        description: "Another adapter has locked the folder of \(path) for longer than "
          + "\(timeLimit). Try again when it has finished, or end its process.")
    }
    defer { folder.unlock() }
    for _ in 1...10 {
      var (stamp, content) = try loadStamped()
      let output = try change(&content)
      let data = try Self.encoder.encode(content)
      guard try self.stamp() == stamp else { continue }
      // Another program may have written the file by then, so it is read again.
      defer { read = nil }
      try data.write(to: file, options: .atomic)
      try folder.flush()
      return output
    }
    throw Failure(
      description: "Another program writes \(path) all the time. Try again when it has finished.")
  }

  private static var encoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    return encoder
  }

  private static var decoder: JSONDecoder {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    return decoder
  }

  private func stamp() throws -> Stamp? {
    let attributes: [FileAttributeKey: Any]
    do {
      attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return nil
    }
    return Stamp(
      file: (attributes[.systemFileNumber] as? NSNumber)?.uint64Value ?? 0,
      size: (attributes[.size] as? NSNumber)?.uint64Value ?? 0,
      date: attributes[.modificationDate] as? Date ?? .distantPast)
  }

  private func index(_ elements: [Element]) throws -> [ModelRecord.ID: ModelRecord] {
    var index: [ModelRecord.ID: ModelRecord] = [:]
    for record in elements.map(\.modelRecord) {
      guard index.updateValue(record, forKey: record.id) == nil else {
        throw Failure(
          description: "\(path) has two elements with the identity \(record.id). Give one of them "
            + "another identity, or remove it.")
      }
    }
    return index
  }

  private func tracked() throws -> (
    present: [ModelRecord.ID: ModelRecord], reported: [ModelRecord.ID: ModelRecord]
  ) { try tracked(load()) }

  private func tracked(
    _ content: Content
  ) throws -> (present: [ModelRecord.ID: ModelRecord], reported: [ModelRecord.ID: ModelRecord]) {
    (
      try index(content.elements),
      Dictionary(content.reported.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    )
  }

  private func report(
    _ change: (inout [ModelRecord.ID: ModelRecord], [ModelRecord.ID: ModelRecord]) -> Void
  ) throws {
    let (present, former) = try tracked()
    var reported = former
    change(&reported, present)
    guard reported != former else { return }
    try modify { content in
      let (present, former) = try tracked(content)
      var reported = former
      change(&reported, present)
      content.reported = reported.values.sorted { $0.id < $1.id }
    }
  }

  // MARK: The adapter

  /// See ``ModelAdapter``.
  public func hasChanges() throws -> Bool {
    let (present, reported) = try tracked()
    return present != reported
  }

  /// See ``ModelAdapter``.
  public func recordsToUpload(limit: Int) throws -> [ModelRecord] {
    let (present, reported) = try tracked()
    let changed = present.values.filter { reported[$0.id] != $0 }
    return Array(changed.sorted { $0.id < $1.id }.prefix(limit))
  }

  /// See ``ModelAdapter``.
  public func didUpload(_ records: [ModelRecord]) throws {
    // If an element was changed since, it differs from this.
    try report { reported, _ in for record in records { reported[record.id] = record } }
  }

  /// See ``ModelAdapter``.
  public func recordsMarkedForDeletion(limit: Int) throws -> [ModelRecord.ID] {
    let (present, reported) = try tracked()
    return Array(reported.keys.filter { present[$0] == nil }.sorted().prefix(limit))
  }

  /// See ``ModelAdapter``.
  public func didDelete(_ ids: [ModelRecord.ID]) throws {
    // If an element was created again, it is not reported now.
    try report { reported, _ in for id in ids { reported[id] = nil } }
  }

  /// See ``ModelAdapter``.
  public func deleteChangeTracking() throws {
    let content = try load()
    guard !content.reported.isEmpty || content.lastImport != nil else { return }
    try modify { content in
      content.reported = []
      content.lastImport = nil
    }
  }

  /// See ``ModelAdapter``.
  public func prepareToImport() throws {
    pending = [:]
    former = try load().lastImport
  }

  /// See ``ModelAdapter``.
  public func save(_ records: [ModelRecord]) throws {
    // All or none.
    let elements = try records.map { record in
      let element = try Element(modelRecord: record)
      guard element.modelRecord == record else {
        throw Failure(
          description: "An element cannot have all fields of \(record.id). Add the fields that the "
            + "schema declares to “\(Element.self)”.")
      }
      // What the file could not have would keep all other records from it.
      let data = try Self.encoder.encode([element])
      guard try Self.decoder.decode([Element].self, from: data).map(\.modelRecord) == [record]
      else {
        throw Failure(
          description:
            "\(record.id) is another record when it is read from JSON again. Correct how "
            + "“\(Element.self)” is coded.")
      }
      return element
    }
    for (record, element) in zip(records, elements) { pending[record.id] = element }
  }

  /// See ``ModelAdapter``.
  public func delete(_ ids: [ModelRecord.ID]) { for id in ids { pending[id] = .some(nil) } }

  /// See ``ModelAdapter``.
  public func persistImportedChanges(position: String) throws -> ModelImport {
    let result = try modify { content in
      guard content.lastImport == former else {
        throw Failure(
          description: "\(path) was put back to an earlier state, or removed, during the import.")
      }
      return try persist(position, in: &content)
    }
    pending = [:]
    former = result
    return result
  }

  private func persist(_ position: String, in content: inout Content) throws -> ModelImport {
    var (present, reported) = try tracked(content)
    var result = ModelImport(position: position)
    var changes = pending
    for id in pending.keys where present[id] != reported[id] {
      result.leftAlone.insert(id)
      changes[id] = nil
    }
    content.elements = content.elements.compactMap { element in
      guard let change = changes.removeValue(forKey: element.modelRecord.id) else { return element }
      return change
    }
    for (_, element) in changes.sorted(by: { $0.key < $1.key }) {
      if let element { content.elements.append(element) }
    }
    for (id, element) in pending where !result.leftAlone.contains(id) {
      reported[id] = element?.modelRecord
    }
    content.reported = reported.values.sorted { $0.id < $1.id }
    content.lastImport = result
    return result
  }

  /// See ``ModelAdapter``.
  public func lastImport() throws -> ModelImport? { try load().lastImport }

  /// See ``ModelAdapter``.
  public func didFinishImport(error: (any Error)?) { pending = [:] }

  /// See ``ModelAdapter``.
  public func record(for id: ModelRecord.ID) throws -> ModelRecord? { try tracked().present[id] }
}
