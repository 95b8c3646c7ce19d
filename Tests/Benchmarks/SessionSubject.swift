import CSQLite
import Foundation

/// SQLite's session extension, held in memory while the writes are made.
///
/// A third device, which is not one of the two, takes the patchsets, so that
/// both kinds of payload are applied to the state that they were made for.
final class SessionSubject: Subject {
  private let directory: URL

  init(directory: URL) throws {
    self.directory = directory
    for device in Device.allCases { try open(device).execute(NotesTable.schema) }
    try openThird().execute(NotesTable.schema)
  }

  func open(_ device: Device) throws -> Database {
    try Database(path: directory.appending(path: "\(device.rawValue).sqlite").path)
  }

  private func openThird() throws -> Database {
    try Database(path: directory.appending(path: "third.sqlite").path)
  }

  func run(_ workload: Workload, of dataset: Dataset, round: Int) throws -> [Quantity: Double] {
    var figures: [Quantity: Double] = [:]
    var changesets: [Device: SessionPayload] = [:]
    for device in workload.writers {
      let database = try open(device)
      let recorder = try SessionRecorder(of: database)
      figures[.write, default: 0] += try write(workload, by: device, of: dataset, to: database)

      // The second of the two finds the pages in the cache, so they take turns.
      var patchset: SessionPayload?
      for kind in round % 2 == 0
        ? [Quantity.extract, .extractPatchset] : [.extractPatchset, .extract]
      {
        let (payload, cost) = try Measurement.of {
          kind == .extract ? try recorder.changeset() : try recorder.patchset()
        }
        figures[kind, default: 0] += cost.processor
        if kind == .extract { changesets[device] = payload } else { patchset = payload }
      }
      guard let patchset else { continue }
      try compressAndApply(patchset, to: &figures)
      try database.checkpoint()
      if device == .first { figures[.fileBeforeExport] = try fileSize(of: database) }
    }
    for (device, changeset) in changesets.sorted(by: { $0.key == .first && $1.key == .second }) {
      let compressed = try ReferenceCompression.compress(changeset.bytes)
      figures[.inflate, default: 0] += try Measurement.of {
        try ReferenceCompression.inflate(compressed, length: changeset.bytes.count)
      }.1.processor
      figures[.rawPayload, default: 0] += Double(changeset.bytes.count)
      // The first device's edits win, so that the devices end equal.
      let receiver = try open(device.other)
      figures[.apply, default: 0] += try Measurement.of {
        try receiver.transaction {
          try changeset.apply(to: receiver, replacing: device == .first)
        }
      }.1.processor
    }
    return try figures.merging(sizes()) { $1 }
  }

  private func compressAndApply(
    _ patchset: SessionPayload, to figures: inout [Quantity: Double]
  ) throws {
    let (compressed, cost) = try Measurement.of {
      try ReferenceCompression.compress(patchset.bytes)
    }
    figures[.compress, default: 0] += cost.processor
    figures[.payload, default: 0] += Double(compressed.count)
    let third = try openThird()
    figures[.applyPatchset, default: 0] += try Measurement.of {
      try third.transaction { try patchset.apply(to: third, replacing: true) }
    }.1.processor
    try third.checkpoint()
  }
}
