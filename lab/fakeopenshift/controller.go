package fakeopenshift

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// controller calls sync for each added or changed object, and retries after an error.
type controller struct {
	name    string
	log     *slog.Logger
	sync    func(ctx context.Context, name string) error
	workers int // number of concurrent syncs; with 1, sync needs no lock
	queue   workqueue.TypedRateLimitingInterface[string]
}

func newController(name string, log *slog.Logger, sync func(context.Context, string) error) *controller {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 3*time.Second)
	return &controller{name: name, log: log.With("controller", name), sync: sync, workers: 1,
		queue: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// withNodeWorkers enables concurrent syncs: a thousand nodes may appear within minutes.
func (c *controller) withNodeWorkers() *controller {
	c.workers = nodeWorkers
	return c
}

const nodeWorkers = 10

func (c *controller) eventHandler() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if name, err := cache.ObjectToName(object); err == nil {
			c.queue.Add(name.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }}
}

// run processes the queue until ctx is done.
func (c *controller) run(ctx context.Context) {
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() { c.processQueue(ctx) })
	}
	workers.Wait()
}

func (c *controller) processQueue(ctx context.Context) {
	for {
		name, stop := c.queue.Get()
		if stop {
			return
		}
		if err := c.sync(ctx, name); err != nil && ctx.Err() == nil {
			c.log.Info("will try again", "object", name, "error", err.Error())
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}
