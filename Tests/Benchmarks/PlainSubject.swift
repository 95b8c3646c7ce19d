import Foundation

/// The same SQL, by hand, without capture: what everything else is measured
/// against. The second device executes the statements in one transaction.
final class PlainSubject: Subject {
  private let directory: URL

  init(directory: URL) throws {
    self.directory = directory
    for device in Device.allCases { try open(device).execute(NotesTable.schema) }
  }

  func open(_ device: Device) throws -> Database {
    try Database(path: directory.appending(path: "\(device.rawValue).sqlite").path)
  }

  func run(_ workload: Workload, of dataset: Dataset, round: Int) throws -> [Quantity: Double] {
    var figures: [Quantity: Double] = [:]
    for device in workload.writers {
      let database = try open(device)
      figures[.write, default: 0] += try write(workload, by: device, of: dataset, to: database)
      try database.checkpoint()
      if device == .first { figures[.fileBeforeExport] = try fileSize(of: database) }
    }
    for device in workload.writers {
      let dump = NotesTable.dump(workload, by: device, of: dataset)
      figures[.rawPayload, default: 0] += Double(dump.count)
      figures[.payload, default: 0] += try Double(
        dump.withUnsafeBytes { try ReferenceCompression.compress($0) }.count)
      let receiver = try open(device.other)
      figures[.apply, default: 0] += try Measurement.of {
        try NotesTable.write(
          workload, by: device, of: dataset, to: receiver, batching: .oneTransaction,
          onlyIfNewer: true)
      }.1.processor
    }
    return try figures.merging(sizes()) { $1 }
  }
}
