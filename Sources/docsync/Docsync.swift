@main
struct Docsync {
  static func main() {}
}
