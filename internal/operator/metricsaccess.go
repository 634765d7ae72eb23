package operator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// How long the API server's word about a token is good for, how long its answer is waited for, how many tokens are
// remembered, and how many are asked about at a time: whoever reaches the port can make tokens up.
const (
	allowedFor    = time.Minute
	refusedFor    = 10 * time.Second
	reviewLimit   = 10 * time.Second
	tokensKnown   = 256
	reviewsAtOnce = 4
)

// reviewedAccess lets read who presents a token that the API server knows, of somebody who may get the path: a
// Prometheus whose ServiceAccount has a ClusterRole with nonResourceURLs /metrics, as OpenShift's has.
func reviewedAccess(c clock.PassiveClock) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
		clients, err := kubernetes.NewForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("make a client for access reviews of metrics: %w", err)
		}
		return func(log logr.Logger, next http.Handler) (http.Handler, error) {
			return newAccess(reviews{clients}, c, log, next), nil
		}, nil
	}
}

// reviewer is what the API server says about who presents a token.
type reviewer interface {
	// authenticate returns nil for a token that is nobody's.
	authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error)
	mayGet(ctx context.Context, user *authenticationv1.UserInfo, path string) (bool, error)
}

// access is a handler in front of another one.
type access struct {
	reviewer reviewer
	clock    clock.PassiveClock
	log      logr.Logger
	next     http.Handler
	slots    chan struct{}

	mu    sync.Mutex
	known map[[sha256.Size]byte]verdict // by the digest of token and path: no token is kept
}

// verdict is an HTTP status, 200 for who may read.
type verdict struct {
	status int
	until  time.Time
}

func newAccess(r reviewer, c clock.PassiveClock, log logr.Logger, next http.Handler) *access {
	return &access{
		reviewer: r, clock: c, log: log, next: next, slots: make(chan struct{}, reviewsAtOnce),
		known: map[[sha256.Size]byte]verdict{},
	}
}

// ServeHTTP implements http.Handler.
func (a *access) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "present a token of a ServiceAccount that may get this path", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "metrics can only be read", http.StatusMethodNotAllowed)
		return
	}
	status, err := a.status(r.Context(), token, r.URL.Path)
	if err != nil {
		a.log.Error(err, "metrics cannot be read until the API server answers access reviews")
		http.Error(w, "the API server could not be asked for an access review", http.StatusServiceUnavailable)
		return
	}
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	a.next.ServeHTTP(w, r)
}

// status is what the API server has said within the last moments, or says now.
func (a *access) status(ctx context.Context, token, path string) (int, error) {
	key := sha256.Sum256([]byte(path + "\n" + token))
	if status, ok := a.remembered(key); ok {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewLimit)
	defer cancel()
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return 0, fmt.Errorf("too many token reviews are under way: %w", ctx.Err())
	}
	status, err := a.ask(ctx, token, path)
	if err != nil {
		return 0, err
	}
	a.remember(key, status)
	return status, nil
}

func (a *access) ask(ctx context.Context, token, path string) (int, error) {
	user, err := a.reviewer.authenticate(ctx, token)
	if err != nil {
		return 0, fmt.Errorf("review the token with the API server: %w", err)
	}
	if user == nil {
		return http.StatusUnauthorized, nil
	}
	allowed, err := a.reviewer.mayGet(ctx, user, path)
	if err != nil {
		return 0, fmt.Errorf("ask the API server whether %s may get %s: %w", user.Username, path, err)
	}
	if !allowed {
		a.log.Info("a client may not read metrics", "user", user.Username, "path", path)
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (a *access) remembered(key [sha256.Size]byte) (int, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.known[key]
	return v.status, ok && a.clock.Now().Before(v.until)
}

func (a *access) remember(key [sha256.Size]byte, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	if len(a.known) >= tokensKnown {
		maps.DeleteFunc(a.known, func(_ [sha256.Size]byte, v verdict) bool {
			return !now.Before(v.until) || v.status != http.StatusOK
		})
	}
	if len(a.known) >= tokensKnown {
		return // So many that may read: each is asked about again.
	}
	life := allowedFor
	if status != http.StatusOK {
		life = refusedFor
	}
	a.known[key] = verdict{status: status, until: now.Add(life)}
}

// reviews asks the API server.
type reviews struct{ clients kubernetes.Interface }

func (r reviews) authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := r.clients.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return nil, err
	}
	return &review.Status.User, nil
}

func (r reviews) mayGet(ctx context.Context, user *authenticationv1.UserInfo, path string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	for name, values := range user.Extra {
		review.Spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	review, err := r.clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
