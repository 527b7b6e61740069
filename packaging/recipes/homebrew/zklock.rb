class Zklock < Formula
  desc "Distributed locks on Apache ZooKeeper: the command and the C library"
  homepage "@REPOSITORY@"
  url "@URL@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "zklock-ffi/install.sh", prefix
    system "cargo", "install", *std_cargo_args(path: "zklock-cli")
    generate_completions_from_executable(bin/"zklock", "completions")
    (man1/"zklock.1").write Utils.safe_popen_read(bin/"zklock", "man")
  end

  test do
    # Locks change hands on a server in memory.
    system bin/"zklock", "quickstart"
  end
end
