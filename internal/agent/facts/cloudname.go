package facts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// CloudNameTimeout is the timeout for the machine's name from the cloud's metadata service.
const CloudNameTimeout = 15 * time.Second

// RequestCloudName requests the machine's name from the metadata service of the platform while the other facts
// are gathered. The channel returns nil if the platform is empty.
func RequestCloudName(ctx context.Context, service host.Metadata, platform string) <-chan *plan.CloudNameFacts {
	answer := make(chan *plan.CloudNameFacts, 1)
	if platform == "" {
		answer <- nil
		return answer
	}
	go func() { answer <- queryCloudName(ctx, service, platform) }()
	return answer
}

func queryCloudName(ctx context.Context, service host.Metadata, platform string) *plan.CloudNameFacts {
	facts := &plan.CloudNameFacts{Platform: platform}
	late := fmt.Errorf("no response within %s", CloudNameTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, CloudNameTimeout, late)
	defer cancel()
	name, err := service.HostName(ctx, platform)
	switch {
	case err == nil:
		facts.Name = name
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), late):
		facts.Error = late.Error()
	case errors.Is(err, host.ErrNotExist):
		facts.Error = "no metadata service of " + platform + " is available to the host: " + err.Error()
	default:
		facts.Error = err.Error()
	}
	return facts
}
