// Package cluster is a client of the Kubernetes API server, based on client-go. It reads many
// objects of many kinds at once, and reads and changes single objects.
//
// [Client] only reads. If the API server does not serve a kind or forbids reading an object, the result
// contains this fact. Only an unreachable cluster is an error. To read several objects of a kind, the client
// lists the objects with quayside's label, in pages. It gets objects without the label by name. It limits the
// number of concurrent requests. It does not fetch the content of Secrets and ConfigMaps. It sends the
// credentials of the kubeconfig only to the server in the kubeconfig. No message contains credentials.
//
// [Writer] changes objects, for 'quayside adopt run'. No other code changes objects in a cluster.
//
// Start from [Open], [Client.Read], [Client.List] and [NewWriter].
package cluster
