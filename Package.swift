// swift-tools-version: 6.1

import PackageDescription

let package = Package(
  name: "DocumentSync",
  platforms: [.macOS(.v14), .iOS(.v17)],
  products: [
    .library(
      name: "DocumentSync", targets: ["DocumentSync", "SyncDirectory", "SyncModel", "SyncStore"]),
    .library(name: "DocumentSyncGRDB", targets: ["DocumentSyncGRDB"]),
    .library(name: "DocumentSyncModels", targets: ["DocumentSyncModels"]),
    .library(name: "DocumentSyncTesting", targets: ["DocumentSyncTesting"]),
    .executable(name: "docsync", targets: ["docsync"]),
  ],
  dependencies: [
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
  ],
  targets: [
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(
      name: "CDeflate", pkgConfig: "libdeflate",
      providers: [.apt(["libdeflate-dev"]), .brew(["libdeflate"])]),
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CMalloc"),
    .target(
      name: "SyncModel",
      dependencies: ["CDeflate", "CZlib", .product(name: "Crypto", package: "swift-crypto")]),
    .target(
      name: "SyncStore",
      dependencies: [
        "SyncModel", "CSQLite",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    .target(name: "SyncDirectory", dependencies: ["SyncModel"]),
    .target(
      name: "DocumentSync",
      dependencies: [
        "SyncModel", "SyncStore", "SyncDirectory",
        .product(name: "Logging", package: "swift-log"),
      ]),
    .target(
      name: "DocumentSyncGRDB",
      dependencies: ["DocumentSync", .product(name: "GRDB", package: "GRDB.swift")]),
    .target(
      name: "DocumentSyncModels",
      dependencies: ["DocumentSync", .product(name: "GRDB", package: "GRDB.swift")]),
    .target(
      name: "DocumentSyncTesting",
      dependencies: ["DocumentSync", "SyncModel", "SyncStore", "SyncDirectory", "CSQLite"]),
    .executableTarget(
      name: "docsync",
      dependencies: [
        "DocumentSync", "SyncModel", "SyncStore", "SyncDirectory",
        .target(name: "CMalloc", condition: .when(platforms: [.linux])),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    .executableTarget(
      name: "NotesSample",
      dependencies: [
        "DocumentSync", "DocumentSyncGRDB", .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "DocumentSync", "DocumentSyncTesting", "SyncModel", "SyncStore", "CSQLite", "CZlib",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/Benchmarks"),
    .executableTarget(
      name: "fleet",
      dependencies: [
        "DocumentSyncTesting", "CSQLite",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/FleetRuns", exclude: ["Mutants.txt"]),
    .testTarget(
      name: "SyncModelTests", dependencies: ["SyncModel"], exclude: ["decode_changeset.py"]),
    .testTarget(
      name: "SyncStoreTests",
      dependencies: [
        "SyncStore", "SyncModel", "CSQLite", .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    .testTarget(
      name: "SyncDirectoryTests",
      dependencies: ["SyncDirectory", "SyncModel", "DocumentSyncTesting"]),
    .testTarget(
      name: "DocumentSyncTestingTests", dependencies: ["DocumentSyncTesting", "SyncModel"]),
    .testTarget(
      name: "DocumentSyncTests",
      dependencies: [
        "DocumentSync", "DocumentSyncGRDB", "DocumentSyncTesting", "SyncModel", "SyncStore",
        "SyncDirectory",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      exclude: ["Shop/make_shop.py"]),
    .testTarget(
      name: "DocumentSyncModelsTests",
      dependencies: ["DocumentSync", "DocumentSyncModels", "DocumentSyncTesting"]),
    .testTarget(
      name: "DocsyncTests",
      dependencies: [
        "docsync", "NotesSample", "DocumentSync", "SyncModel", "SyncDirectory",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
