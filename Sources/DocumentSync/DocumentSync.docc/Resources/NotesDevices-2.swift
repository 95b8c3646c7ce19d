import Foundation
import GRDB

/// Two devices with a folder that they share. Returns the notes that each of them shows.
func tryNotes(in folder: URL) async throws -> [[String]] {
  let shared = folder.appendingPathComponent("Shared")
  try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: true)

  // The laptop has notes, and creates the document.
  let laptopPath = folder.appendingPathComponent("laptop.db").path
  try openNotes(at: laptopPath).close()
  let laptop = try await NotesDocument(at: laptopPath, through: shared.path, device: "laptop")
  try await laptop.database.write { db in
    var note = Note(text: "Buy milk")
    try note.insert(db)
  }

  // The phone has no database yet, and gets the document.
  let phone = try await NotesDocument(
    at: folder.appendingPathComponent("phone.db").path, through: shared.path, device: "phone")
  try await phone.database.write { db in
    var note = Note(text: "Call Ada")
    try note.insert(db)
  }
  return []
}
