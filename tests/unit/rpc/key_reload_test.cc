// Certificates are replaced under processes that run.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "common/rpc/credentials.h"
#include "tests/unit/rpc/self_signed.h"

namespace farkv {
namespace {

class KeyReloadTest : public ::testing::Test {
 protected:
  // As a mounted Secret: a link to the folder with the newest files.
  void Put(const SelfSigned& server, const SelfSigned& client) {
    const std::filesystem::path made =
        folder_ / ("made" + std::to_string(++times_));
    std::filesystem::create_directories(made);
    for (const auto& [name, text] : {std::pair("server.pem", server.cert),
                                     {"server.key", server.key},
                                     {"client.pem", client.cert},
                                     {"client.key", client.key}}) {
      std::ofstream(made / name) << text;
    }
    std::filesystem::create_directory_symlink(made, folder_ / "next");
    std::filesystem::rename(folder_ / "next", folder_ / "now");
  }

  // Each has the other's certificate for its CA.
  TlsOptions Options(const std::string& own, const std::string& peer) const {
    const std::filesystem::path now = folder_ / "now";
    return {now / (peer + ".pem"), now / (own + ".pem"), now / (own + ".key"),
            absl::Seconds(1)};
  }

  static std::shared_ptr<grpc::Channel> Connect(
      int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    // Otherwise a channel would share the connection of an older one.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto channel = grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), credentials, arguments);
    const auto deadline =
        std::chrono::system_clock::now() + std::chrono::seconds(2);
    return channel->WaitForConnected(deadline) ? channel : nullptr;
  }

  // Whether that becomes true within a minute.
  static bool Connects(
      int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    for (int i = 0; i < 30; ++i) {
      if (Connect(port, credentials) != nullptr) return true;
    }
    return false;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ("key_reload_test_" + std::to_string(getpid()));
  int times_ = 0;
};

TEST_F(KeyReloadTest, NewKeysOfBothSidesAreUsedAndOpenConnectionsGoOn) {
  const SelfSigned server, client, new_server, new_client;
  Put(server, client);
  grpc::CallbackGenericService nothing;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&nothing);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0",
                           *MakeServerCredentials(Options("server", "client")),
                           &port);
  const auto running = builder.BuildAndStart();
  ASSERT_NE(running, nullptr);
  const auto kept = *MakeChannelCredentials(Options("client", "server"));
  const auto open = Connect(port, kept);
  ASSERT_NE(open, nullptr);

  Put(new_server, new_client);

  // One that has read the new files from the start, and one that was there.
  EXPECT_TRUE(
      Connects(port, *MakeChannelCredentials(Options("client", "server"))));
  EXPECT_TRUE(Connects(port, kept));
  EXPECT_EQ(open->GetState(false), GRPC_CHANNEL_READY);
  // The old pair is nobody's any more.
  const std::filesystem::path old = folder_ / "made1";
  EXPECT_EQ(Connect(port, *MakeChannelCredentials({folder_ / "now/server.pem",
                                                   old / "client.pem",
                                                   old / "client.key"})),
            nullptr);
  std::filesystem::remove_all(folder_);
}

}  // namespace
}  // namespace farkv
