import Foundation
import SyncModel
import SyncStore

/// This package: capture by triggers in the file, sealed change sets, apply.
final class DocumentSyncSubject: Subject {
  private let directory: URL
  private let stores: [Device: LocalStore]

  init(directory: URL) throws {
    self.directory = directory
    let pair = try StorePair(directory: directory)
    stores = [.first: pair.first, .second: pair.second]
  }

  func open(_ device: Device) throws -> Database {
    try Database(path: StorePair.path(of: device, in: directory))
  }

  func run(_ workload: Workload, of dataset: Dataset, round: Int) throws -> [Quantity: Double] {
    var figures: [Quantity: Double] = [:]
    var files: [Device: [[UInt8]]] = [:]
    for device in workload.writers {
      let database = try open(device)
      figures[.write, default: 0] += try write(workload, by: device, of: dataset, to: database)
      try database.checkpoint()
      if device == .first { figures[.fileBeforeExport] = try fileSize(of: database) }
    }
    for device in workload.writers {
      guard let store = stores[device] else { continue }
      let (report, cost) = try Measurement.of { try store.seal() }
      figures[.extract, default: 0] += cost.processor
      for changeSet in report.changeSets {
        let bytes = try store.sealedBytes(changeSet.number)
        figures[.payload, default: 0] += Double(bytes.count)
        files[device, default: []].append(bytes)
        try store.markPublished(changeSet.number)
      }
    }
    for device in workload.writers {
      guard let receiver = stores[device.other] else { continue }
      figures[.apply, default: 0] += try Measurement.of {
        for window in Self.windows(files[device] ?? []) { try receiver.apply(files: window) }
      }.1.processor
    }
    return try figures.merging(sizes()) { $1 }
  }
}

extension DocumentSyncSubject {
  /// The files as a sync fetches them: some at a time, up to 4 MiB.
  fileprivate static func windows(_ files: [[UInt8]]) -> [[[UInt8]]] {
    var windows: [[[UInt8]]] = []
    var byteCount = Int.max
    for file in files {
      if byteCount >= 4 << 20 {
        windows.append([])
        byteCount = 0
      }
      windows[windows.count - 1].append(file)
      byteCount += file.count
    }
    return windows
  }
}

/// Two stores of one new document, the second adopted from a snapshot of the
/// first.
struct StorePair {
  let first: LocalStore
  let second: LocalStore

  /// Where a device's store is.
  static func path(of device: Device, in directory: URL) -> String {
    directory.appending(path: "\(device.rawValue).sqlite").path
  }

  init(directory: URL, schema: String = NotesTable.schema) throws {
    let path = Self.path(of: .first, in: directory)
    try Database(path: path).execute(schema)
    var binding = StoreBinding(
      application: "benchmark", root: .random(), directory: directory.path,
      documentIdentifier: "notes", document: .random(), generation: .random(),
      generationOrdinal: 1, client: .random(), clientDescription: Device.first.rawValue)
    first = try LocalStore.create(
      at: path, binding: binding, configuration: StoreConfiguration())
    let copy = Self.path(of: .second, in: directory)
    _ = try first.snapshot(to: copy)
    binding.client = .random()
    binding.clientDescription = Device.second.rawValue
    second = try LocalStore.adopt(snapshotAt: copy, binding: binding)
  }
}

/// A change set was not applied at once.
struct NotApplied: Error, CustomStringConvertible {
  var report: ApplyReport
  var description: String { "a change set was not applied: \(report)" }
}

extension LocalStore {
  /// Checks, decodes and applies files that were fetched together.
  func apply(files: [[UInt8]]) throws {
    let report = try apply(
      try files.map { bytes in
        ReceivedChangeSet(
          changeSet: try ChangeSetCodec.decode(bytes), hash: ContentHash(of: bytes), bytes: bytes)
      })
    guard report.waiting.isEmpty, report.applied.count == files.count, report.parkedRows == 0
    else { throw NotApplied(report: report) }
  }
}
