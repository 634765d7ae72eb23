package testenv

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/lab/faultproxy"
)

func TestStaleWatches(t *testing.T) {
	const delay = 2 * time.Second
	r := newRig(t, Options{Hosts: Hosts(1)})
	ctx := newTimeoutContext(t, 5*time.Minute)
	if _, err := r.InstallOperator(ctx, ""); err != nil {
		t.Fatal(err)
	}
	adjust, err := r.StaleWatches(delay)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CreateKey(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.ListHosts(ctx); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := r.RunOperator(adjust); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if elapsed := time.Since(start); elapsed < delay {
		t.Errorf("an operator behind the proxy had a Ready node after %s", elapsed)
	}
}

// A cache that starts on a lagging API server contains deleted objects; a request for the current state does not.
func TestStaleWatches_CacheContainsDeletedObject(t *testing.T) {
	r := newRig(t, Options{})
	ctx := newTimeoutContext(t, 2*time.Minute)
	if _, err := r.InstallOperator(ctx, ""); err != nil {
		t.Fatal(err)
	}
	deleted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "gone"}}
	if err := r.Client.Create(ctx, deleted); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Delete(ctx, deleted); err != nil {
		t.Fatal(err)
	}
	proxy, _, err := r.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	restore := proxy.Add("configmaps", faultproxy.Fault{ListsAt: deleted.ResourceVersion, Hold: true})
	key := client.ObjectKeyFromObject(deleted)
	late, err := cache.New(proxy.Through(r.operatorConfig), cache.Options{DefaultNamespaces: map[string]cache.Config{deleted.Namespace: {}}})
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	defer ended.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended.Go(func() {
		if err := late.Start(running); err != nil {
			t.Error(err)
		}
	})
	if err := late.Get(ctx, key, &corev1.ConfigMap{}); err != nil {
		t.Errorf("the cache does not have it: %v", err)
	}
	if err := r.Client.Get(ctx, key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the API server has it: %v", err)
	}
	restore()
	err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := late.Get(ctx, key, &corev1.ConfigMap{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("the cache still has it: %v", err)
	}
}
