import DocumentSync
import DocumentSyncTesting
import SyncDirectory
import SyncModel
import Testing

/// A marker that a newer version has written.
struct NewerMarkerTests {
  @Test func listsGoByItsName() async throws {
    let fleet = try await TestFleet(2)
    try fleet[1].put("x", "1")
    try await fleet.settle()
    let directory = DamagedDirectory(of: fleet)
    let marker = try directory.marker(of: 1)
    try directory.replace(marker, by: directory.newer(marker))
    let manager = ApplicationSyncManager(directory: fleet.memory, environment: fleet.environment)
    #expect(try await manager.listDocuments(measuring: true).count == 1)
    for clients in [try await manager.listClients(), try await fleet[0].listClients()] {
      #expect(clients.filter { $0.status == .member }.count == 2)
    }
  }
}
