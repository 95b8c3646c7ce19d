import Testing

@testable import SyncSecurity
