package boot

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

func init() {
	// etcd preallocates the current and the next segment of its log: 128 MB for each control plane.
	wal.SegmentSizeBytes = 8 << 20
}

// etcdSocket is relative, because the path of a unix socket is limited to 108 bytes. The data directory is the
// working directory.
const etcdSocket = "unix://etcd.sock:0"

// startEtcd starts etcd and returns when it is ready.
//
// Writes are not synced to disk: the data survives a kill of the process, but not a power failure, which is
// irrelevant for a lab.
func startEtcd(ctx context.Context, c *Config) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = c.path("etcd")
	config.Name = "lab"
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"
	config.LogOutputs = []string{c.path("etcd.log")}
	config.EnableGRPCGateway = false
	config.QuotaBackendBytes = 8 << 30

	client, peer := mustURL(etcdSocket), mustURL("http://127.0.0.1:0")
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{peer}
	config.ListenPeerUrls = []url.URL{peer}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", config.Dir, err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, fmt.Errorf("start etcd in %s: %w", config.Dir, err)
	case <-ctx.Done():
		return nil, fmt.Errorf("start etcd in %s: %w", config.Dir, ctx.Err())
	}
}

func mustURL(s string) url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return *u
}
