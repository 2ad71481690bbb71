// `hidane gateway` alone, for the whole-process tests of a build without the other rooms.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "gateway/gateway.h"

extern char** environ;
using namespace hidane;

int main(int argc, char** argv) {
  gateway::ConfigSources sources;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string pair = *e;
    const size_t equals = pair.find('=');
    if (equals != std::string::npos)
      sources.environment.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--set") sources.sets.push_back(value);
    if (flag == "--listen") sources.sets.push_back("server.listen=" + value);
    if (flag == "--policy") sources.sets.push_back("routing.policy=" + value);
    if (flag == "--upstream") sources.upstreams.push_back(value);
    if (flag == "-c") {
      std::ifstream in(value);
      sources.file_name = value;
      sources.file_text = std::string(std::istreambuf_iterator<char>(in), {});
    }
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  auto config = gateway::LoadConfig(sources);
  if (!config) {
    std::fprintf(stderr, "hidane: %s\n", config.error().what.c_str());
    return 2;
  }
  auto started = gateway::Gateway::Start(std::move(*config));
  if (!started) {
    std::fprintf(stderr, "hidane: %s\n", started.error().what.c_str());
    return 3;
  }
  static gateway::Gateway* running = started->get();
  std::thread([] {
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGINT);
    int signal = 0;
    sigwait(&all, &signal);
    running->Drain();
    sigwait(&all, &signal);
    running->Stop();
  }).detach();
  running->Join();
}
